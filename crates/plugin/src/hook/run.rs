//! One firing of a command: told on one pipe, heard on the other, bounded in what it says and in time.

use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use windlass_sandbox::{Exit, Inlet, Outlet, Servant};
use windlass_toolkit::{Berth, Refusal};

/// The most a hook may say, in bytes.
pub(super) const LONGEST: usize = 64 << 10;

/// Starts a command, tells it something and gives what it said, if it ended well.
pub(super) async fn ask(
    berth: &Berth,
    servant: Servant,
    payload: &Value,
    patience: Duration,
) -> Result<String, Refusal> {
    let asking = async {
        let engaged = berth.engage(servant).await;
        let engaged = engaged.map_err(|failure| Refusal::failed(failure.text))?;
        let (input, output, held) = engaged.split();
        let ended = async {
            let ending = held.ended().await;
            // What it left running holds its standard output open, and is not heard.
            held.end(Duration::ZERO).await;
            Ok(ending)
        };
        let told = async {
            tell(input, payload).await;
            Ok(())
        };
        let ((), said, ending) = tokio::try_join!(told, hear(output), ended)?;
        match ending.exit {
            Exit::Code(0) => String::from_utf8(said)
                .map_err(|_| Refusal::failed("what it said is no text (UTF-8)")),
            Exit::Code(2) => Err(Refusal::said(match held.complaint() {
                said if said.is_empty() => "it gave no reason".to_owned(),
                said => said,
            })),
            Exit::Code(_) | Exit::Signal(_) | Exit::Crowded(_) | Exit::Lost => {
                let words = held.last_words().unwrap_or_else(|| "it was ended".to_owned());
                Err(Refusal::failed(words))
            }
        }
    };
    match timeout(patience, asking).await {
        Ok(said) => said,
        Err(_) => {
            let ms = patience.as_millis();
            Err(Refusal::failed(format!("it did not answer within {ms} ms")))
        }
    }
}

/// Writes what a command is told. One that does not read it has ended, or soon will have.
async fn tell(mut input: Inlet, payload: &Value) {
    let line = format!("{payload}\n");
    let _ = input.write_all(line.as_bytes()).await;
}

/// Reads what a command says until it has said everything, or too much.
async fn hear(output: Outlet) -> Result<Vec<u8>, Refusal> {
    let mut said = Vec::new();
    let most = LONGEST as u64 + 1;
    let read = output.take(most).read_to_end(&mut said).await;
    read.map_err(|error| Refusal::failed(format!("it could not be heard: {error}")))?;
    if said.len() > LONGEST {
        let most = LONGEST >> 10;
        return Err(Refusal::failed(format!("it said more than {most} KiB")));
    }
    Ok(said)
}
