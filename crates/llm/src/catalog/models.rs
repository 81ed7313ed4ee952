//! The table of models: lines of text that stay text until somebody asks for a provider's.

use super::provider;
use windlass_protocol::Effort;

/// Written by `cargo xtask catalog`. Its first lines say what the columns are.
const TABLE: &str = include_str!("models.tsv");

/// What a model is assumed to write at most, where a request has to say a number.
const ASSUMED_OUTPUT: u64 = 8_192;

/// A model, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// What its provider calls it.
    pub id: String,
    /// How many tokens it can keep in view, what it writes included.
    pub context: Option<u64>,
    /// How many tokens it can write.
    pub output: Option<u64>,
    /// What it costs.
    pub price: Price,
    /// It sees images.
    pub images: bool,
    /// It reads PDFs.
    pub pdfs: bool,
    /// It calls tools.
    pub calls: bool,
    /// It reasons before it answers.
    pub reasons: bool,
    /// Its reasoning can be turned on and off.
    pub toggles: bool,
    /// It writes JSON after a schema.
    pub structured: bool,
    /// It takes a temperature.
    pub temperature: bool,
    /// The efforts of reasoning it knows, from little to much as a rule.
    pub efforts: Vec<Effort>,
    /// How many tokens it may be given for reasoning, if it can be told.
    pub budget: Option<Budget>,
}

/// What tokens cost, in USD per million.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// What is read.
    pub input: Option<f64>,
    /// What is written, thoughts included.
    pub output: Option<f64>,
    /// What is read from the cache.
    pub cache_read: Option<f64>,
    /// What is written to the cache.
    pub cache_write: Option<f64>,
}

/// The bounds of a budget for reasoning, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// At least.
    pub least: Option<u64>,
    /// At most.
    pub most: Option<u64>,
}

impl Model {
    /// A model the catalogue does not know: text only, careful with what it writes, no price,
    /// and trusted to call tools, since otherwise it could do nothing.
    pub fn assumed(id: &str) -> Model {
        Model {
            id: id.to_owned(),
            context: None,
            output: None,
            price: Price::default(),
            images: false,
            pdfs: false,
            calls: true,
            reasons: false,
            toggles: false,
            structured: false,
            temperature: true,
            efforts: Vec::new(),
            budget: None,
        }
    }

    /// How many tokens to let it write, where a request has to say a number.
    pub fn most_output(&self) -> u64 {
        self.output.unwrap_or(ASSUMED_OUTPUT)
    }
}

/// The models that are known of a provider, by id or another name of it.
pub fn models(name: &str) -> impl Iterator<Item = Model> {
    rows(name).filter_map(read)
}

/// One model of a provider, if it is known.
pub fn model(name: &str, id: &str) -> Option<Model> {
    rows(name).find(|row| row.split('\t').next() == Some(id)).and_then(read)
}

fn rows(name: &str) -> impl Iterator<Item = &'static str> {
    let heading = provider(name).map(|provider| format!("\n[{}]\n", provider.id));
    let section = heading.and_then(|heading| TABLE.split_once(&heading)).map_or("", |(_, s)| s);
    section.lines().take_while(|row| !row.is_empty())
}

/// A row. A row that is not as it should be is no row; a test reads them all.
fn read(row: &'static str) -> Option<Model> {
    let mut columns = row.split('\t');
    let mut next = || columns.next();
    let id = next()?.to_owned();
    let (context, output) = (known(next()?)?, known(next()?)?);
    let price = Price {
        input: known(next()?)?,
        output: known(next()?)?,
        cache_read: known(next()?)?,
        cache_write: known(next()?)?,
    };
    let (takes, abilities) = (next()?, next()?);
    let efforts = next()?.split(',').filter_map(Effort::named).collect();
    let budget = next()?
        .split_once("..")
        .map(|(least, most)| Budget { least: least.parse().ok(), most: most.parse().ok() });
    Some(Model {
        id,
        context,
        output,
        price,
        images: takes.contains('i'),
        pdfs: takes.contains('p'),
        calls: abilities.contains('c'),
        reasons: abilities.contains('r'),
        toggles: abilities.contains('o'),
        structured: abilities.contains('s'),
        temperature: !abilities.contains('f'),
        efforts,
        budget,
    })
}

/// A number, or that it is unknown, or nothing if it is neither.
fn known<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    if text == "-" { Some(None) } else { text.parse().ok().map(Some) }
}
