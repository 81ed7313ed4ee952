//! Kinds of mistakes that models make in edits, and the cases that they produce.

use super::{CorpusCase, CorpusEdit, CorpusEditLine, ReplaceCount, SeededRng, replace_word};

/// Kinds of mistakes, each with the minimum percentage of its certain edits that must be applied.
pub(super) const MISTAKE_KINDS: [(&str, usize, MistakeFn); 20] = [
    ("none", 100, no_mistake),
    ("whitespace at line ends, in the edit", 100, trailing_space_in_edit),
    ("whitespace at line ends, in the file", 100, trailing_space_in_file),
    ("indented too deep", 95, too_deep),
    ("indented too little", 95, too_shallow),
    ("tabs for spaces, spaces for tabs", 95, other_indent),
    ("first line without its indentation", 85, first_line_unindented),
    ("spacing within lines", 95, changed_spacing),
    ("escaped once too often", 85, extra_escapes),
    ("blank lines around", 90, surrounding_whitespace),
    ("CRLF", 100, crlf_line_ends),
    ("typographic quotes", 85, typographic_quotes),
    ("a stale line", 70, stale_line),
    ("a stale line, indented too deep", 0, stale_line_too_deep),
    ("a near-duplicate in the file", 95, near_duplicate),
    ("cut off or elided", 0, elided_lines),
    ("twice in the file", 0, duplicated_block),
    ("not in the file", 0, missing_block),
    ("replaceAll", 100, replace_everywhere),
    ("part of a line with different spacing", 95, partial_line),
];

type MistakeFn = fn(&mut SeededRng, &CorpusEdit) -> Option<CorpusCase>;

fn no_mistake(_: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    Some(base.to_case(base.old_text(), base.new_text()))
}

fn trailing_space_in_edit(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let space = ["  ", "\t", " "][rng.next_below(3)];
    let mut case = base.with_mistake(|line| match rng.next_below(2) {
        0 => line.to_owned(),
        _ => format!("{line}{space}"),
    });
    let old: Vec<&str> = case.old.split('\n').collect();
    let line = |line: &CorpusEditLine| {
        line.old_line.map_or(line.text.clone(), |index| old[index].to_owned())
    };
    case.new = base.new.iter().map(line).collect::<Vec<_>>().join("\n");
    Some(case)
}

fn trailing_space_in_file(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let mut file_lines: Vec<String> = base.old.clone();
    let index = rng.next_below(file_lines.len() - 1);
    file_lines[index].push_str("  ");
    let new_line = |line: &CorpusEditLine| match line.old_line {
        Some(index) => file_lines[index].clone(),
        None => line.text.clone(),
    };
    // A changed line may keep its trailing whitespace or not, so only kept lines are tested.
    base.new
        .iter()
        .find(|line| line.old_line == Some(index) && !base.old[index].trim().is_empty())?;
    let after: Vec<String> = base.new.iter().map(new_line).collect();
    let mut case = base.to_case(base.old_text(), base.new_text());
    case.text = base.source_with(&file_lines.join("\n"));
    case.expected = Some(base.source_with(&after.join("\n")));
    Some(case)
}

fn indent_line(line: &str, by: &str) -> String {
    if line.trim().is_empty() { line.to_owned() } else { format!("{by}{line}") }
}

fn too_deep(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let by = base.indent_unit.repeat(1 + rng.next_below(2));
    let case = base.with_mistake(|line| indent_line(line, &by));
    (!case.text.contains(&case.old)).then_some(case)
}

fn too_shallow(_: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let lines = base.old.iter().map(String::as_str);
    let lines = lines.chain(base.new.iter().map(|line| line.text.as_str()));
    let non_blank = lines.filter(|line| !line.trim().is_empty());
    let margin = non_blank.map(|line| line.len() - line.trim_start().len()).min()?;
    let case = base.with_mistake(|line| line.get(margin..).unwrap_or_default().to_owned());
    // Lines without their margin may occur exactly like this somewhere else.
    (margin > 0 && !case.text.contains(&format!("\n{}", case.old))).then_some(case)
}

fn other_indent(_: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let (from, to) =
        if base.indent_unit == "\t" { ("\t", "    ") } else { (base.indent_unit, "\t") };
    let lines = base.old.iter().chain(base.new.iter().map(|line| &line.text));
    let indents: Vec<usize> = lines.map(|line| line.len() - line.trim_start().len()).collect();
    let is_divisible = indents.iter().all(|indent| indent % from.len() == 0);
    let indented = indents.iter().take(base.old.len()).any(|indent| *indent > 0);
    (is_divisible && indented).then(|| {
        base.with_mistake(|line| {
            let content = line.trim_start();
            to.repeat((line.len() - content.len()) / from.len()) + content
        })
    })
}

fn first_line_unindented(_: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let (first, is_kept) = (base.old[0].trim_start(), base.new[0].old_line == Some(0));
    let mut case = (is_kept && first != base.old[0] && base.old.len() > 2)
        .then(|| base.stale_line_case(0, first))?;
    case.old = case.old.replacen('\n', "  \n", 1);
    case.new = case.new.replacen('\n', "  \n", 1);
    Some(case)
}

fn changed_spacing(_: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let with_extra_space = |line: &str| {
        let content = line.trim_start();
        let (indent, _) = line.split_at(line.len() - content.len());
        indent.to_owned() + &content.replacen(' ', "  ", 1)
    };
    // The right spacing of a new line is unknown, so it stays as written.
    let mut case = base.with_mistake(with_extra_space);
    let new = base.new.iter().map(|line| match line.old_line {
        Some(index) => with_extra_space(&base.old[index]),
        None => line.text.clone(),
    });
    case.new = new.collect::<Vec<_>>().join("\n");
    (case.old != base.old_text()).then_some(case)
}

fn extra_escapes(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let escape_all = rng.next_below(2) == 0;
    let escape = |text: String| {
        let text = if escape_all { text.replace('\\', "\\\\") } else { text };
        let text = text.replace('"', "\\\"");
        if escape_all { text.replace('\n', "\\n").replace('\t', "\\t") } else { text }
    };
    let case = base.to_case(escape(base.old_text()), escape(base.new_text()));
    let is_ambiguous =
        !escape_all && (base.old_text().contains('\\') || base.new_text().contains('\\'));
    (case.old != base.old_text() && !is_ambiguous).then_some(case)
}

fn surrounding_whitespace(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let (before, after) = [("\n", "\n"), ("\n\n", ""), ("", "\n\n\n")][rng.next_below(3)];
    let around = |text: String| format!("{before}{text}{after}");
    let case = base.to_case(around(base.old_text()), around(base.new_text()));
    (!case.text.contains(&case.old)).then_some(case)
}

fn crlf_line_ends(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let (old, new) = (base.old_text(), base.new_text());
    let (old_end, new_end) = [("\r\n", "\r\n"), ("\r\n", "\n"), ("\n", "\r\n")][rng.next_below(3)];
    Some(base.to_case(old.replace('\n', old_end), new.replace('\n', new_end)))
}

fn typographic_quotes(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let straighten = |text: &str| text.replace(['“', '”'], "\"").replace('–', "-");
    let index = base.pick_kept_middle_line(rng)?;
    if straighten(&base.old[index]) != base.old[index] {
        return Some(base.stale_line_case(index, &straighten(&base.old[index])));
    }
    if !base.old[index].contains('"') {
        // Without quotes to change, only a text with other non-ASCII characters is a useful case.
        return (!base.old_text().is_ascii())
            .then(|| base.to_case(base.old_text(), base.new_text()));
    }
    let curly = base.old[index].replacen('"', "“", 1).replacen('"', "”", 1);
    let mut case = base.stale_line_case(index, &curly);
    case.is_certain = base.old.len() > 4;
    Some(case)
}

fn stale_line(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let index = base.pick_kept_middle_line(rng)?;
    let line = replace_word(rng, &base.old[index])?;
    Some(base.stale_line_case(index, &line))
}

fn stale_line_too_deep(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let case = stale_line(rng, base)?;
    let deepen = |text: &str| {
        let lines = text.split('\n').map(|line| indent_line(line, base.indent_unit));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (old, new) = (deepen(&case.old), deepen(&case.new));
    Some(CorpusCase { old, new, is_certain: false, ..case })
}

fn near_duplicate(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let index = rng.next_below(base.old.len());
    let mut twin = base.old.clone();
    twin[index] = replace_word(rng, &twin[index])?;
    let variant = rng.next_below(3);
    let mut case = match variant {
        0 => trailing_space_in_edit(rng, base)?,
        1 => stale_line(rng, base)?,
        _ => {
            // A third variant, equally close to both blocks.
            let third = replace_word(rng, &twin[index])?;
            let is_kept = base.new.iter().any(|line| line.old_line == Some(index));
            (is_kept && third != base.old[index]).then(|| base.stale_line_case(index, &third))?
        }
    };
    case.is_certain = variant == 0;
    let twin = twin.join("\n");
    let twin_first = rng.next_below(2) == 0;
    let add_twin = |text: &str| {
        if twin_first { format!("{twin}\n\n{text}") } else { format!("{text}\n{twin}\n") }
    };
    case.text = add_twin(&case.text);
    // The stale text may equal the twin by chance.
    if variant > 0 && case.text.contains(&case.old) {
        return None;
    }
    case.expected = case.expected.filter(|_| variant < 2).map(|after| add_twin(&after));
    Some(case)
}

fn elided_lines(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    if rng.next_below(2) == 0 {
        // The last line is cut in the middle, and the first line gets trailing whitespace.
        let last = base.old.last()?;
        let is_kept = base.new.last()?.old_line == Some(base.old.len() - 1)
            && base.new.first()?.old_line == Some(0);
        let middle = last.char_indices().nth(last.chars().count() / 2)?.0;
        let mut case =
            is_kept.then(|| base.stale_line_case(base.old.len() - 1, &last[..middle]))?;
        case.old = case.old.replacen('\n', " \n", 1);
        case.new = case.new.replacen('\n', " \n", 1);
        return Some(CorpusCase { is_certain: false, ..case });
    }
    let start = base.pick_kept_middle_line(rng)?;
    let end = (start + 1 + rng.next_below(3)).min(base.old.len() - 1);
    let is_kept = |index: usize| base.new.iter().any(|line| line.old_line == Some(index));
    if !(start..end).all(is_kept) {
        return None;
    }
    let mut old: Vec<&str> = base.old.iter().map(String::as_str).collect();
    old.splice(start..end, ["    ..."]);
    let mut new: Vec<&str> = Vec::new();
    for line in &base.new {
        match line.old_line {
            Some(index) if index == start => new.push("    ..."),
            Some(index) if index > start && index < end => {}
            _ => new.push(&line.text),
        }
    }
    let case = base.to_case(old.join("\n"), new.join("\n"));
    Some(CorpusCase { is_certain: false, ..case })
}

fn duplicated_block(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let mut case = match rng.next_below(3) {
        0 => no_mistake(rng, base)?,
        1 => trailing_space_in_edit(rng, base)?,
        _ => too_deep(rng, base)?,
    };
    case.text = format!("{}\n{}\n", case.text, base.old_text());
    Some(CorpusCase { expected: None, is_certain: false, ..case })
}

fn missing_block(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let case = match rng.next_below(3) {
        0 => no_mistake(rng, base)?,
        1 => trailing_space_in_edit(rng, base)?,
        _ => stale_line(rng, base)?,
    };
    let text =
        if rng.next_below(2) == 0 { base.other_source.to_owned() } else { base.source_with("") };
    let is_present = text.contains(&case.old);
    (!is_present).then_some(CorpusCase { text, expected: None, is_certain: false, ..case })
}

fn replace_everywhere(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let line = base.old[rng.next_below(base.old.len())].as_str();
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).collect();
    let old = (*words.get(rng.next_below(words.len()))?).to_owned();
    let (text, new) = (base.text(), format!("{old}$&é"));
    let after = Some(text.replace(&old, &new));
    Some(CorpusCase { text, old, new, count: ReplaceCount::All, expected: after, is_certain: true })
}

/// Generates an edit of part of a line. The file contains that part, or only longer words that
/// contain it.
fn partial_line(rng: &mut SeededRng, base: &CorpusEdit) -> Option<CorpusCase> {
    let index = rng.next_below(base.old.len());
    let line = base.old[index].as_str();
    let content = line.trim();
    let with_extra_space = |text: &str| text.replacen(' ', "  ", 1);
    let changed = replace_word(rng, content)?;
    let normalize = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_unique = normalize(&base.text()).matches(&normalize(content)).count() == 1;
    if content.contains('\\') || !content.contains(' ') || !is_unique {
        return None;
    }
    let is_word = |character: Option<char>| {
        character.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let longer = match rng.next_below(3) {
        0 if is_word(content.chars().next()) => Some(format!("pre{content}")),
        1 if is_word(content.chars().next_back()) => Some(format!("{content}_9")),
        _ => None,
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    let source_with_line = |content: &str| {
        let mut block = base.old.clone();
        block[index] = format!("{indent}{content}");
        base.source_with(&block.join("\n"))
    };
    let mut case = base.to_case(with_extra_space(content), with_extra_space(&changed));
    case.is_certain = longer.is_none();
    case.expected = case.is_certain.then(|| source_with_line(&format!("[{changed}]")));
    case.text = source_with_line(&longer.unwrap_or_else(|| format!("[{content}]")));
    Some(case)
}
