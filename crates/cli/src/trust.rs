//! `windlass trust`: shows what a folder would have Windlass run or obey, and asks.

use crate::{Exit, args, screen, setup::Setup};
use windlass_project::{Request, Since, Trust};

pub(crate) fn trust(args: &args::Trust) -> anyhow::Result<Exit> {
    let (places, root) = Setup::places()?;
    let mut trust = Trust::read(&places)?;
    if args.revoke {
        let known = trust.remove(&root)?;
        let told = if known { "no longer trusted" } else { "was not trusted" };
        screen::note(&format!("{} {told}", root.display()));
        return Ok(Exit::Done);
    }
    Setup::check_root(&places, &root)?;
    let request = trust.request(&root)?;
    let name = root.display();
    show(&name.to_string(), &request);
    if request.since == Since::Same {
        screen::note(&format!("{name} is trusted, as it is now"));
        return Ok(Exit::Done);
    }
    let agreed = args.yes || screen::agrees("Trust it as it is now? [y/N] ");
    if !agreed {
        screen::note("not trusted; use --yes to trust it without being asked");
        return Ok(Exit::Denied);
    }
    trust.add(request)?;
    screen::note(&format!("{name} is trusted until what is in it changes"));
    Ok(Exit::Done)
}

fn show(name: &str, request: &Request) {
    if request.files.is_empty() {
        screen::note(&format!("{name} has nothing that Windlass would run or obey"));
    } else {
        screen::note(&format!("{name} would have Windlass run or obey:"));
        tell(&request.files);
        screen::note("Its settings set:");
        if request.wishes.is_empty() {
            screen::note("  nothing");
        }
        tell(&request.wishes);
    }
    screen::note(
        "In a folder that is trusted, language servers and formatters are started for its files; they \
         look at it, and can change nothing and reach nothing",
    );
    match &request.since {
        Since::Never | Since::Same => {}
        Since::Unknown => screen::note(
            "It has changed since you trusted it. What it was like then was not kept, so look at \
             all of it",
        ),
        Since::Changed(lines) => {
            screen::note("Since you trusted it:");
            tell(lines);
        }
    }
}

fn tell(lines: &[String]) {
    for line in lines {
        screen::note(&format!("  {line}"));
    }
}
