//! Transactions that are tried again.

/// Runs a call in a transaction, and again if it lost against another one.
macro_rules! within {
    ($begin:expr, |$tables:ident| $call:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let mut transaction = match $begin.await {
                Ok(transaction) => transaction,
                Err(not_begun) if not_begun.conflict && tries < TRIES => continue,
                Err(not_begun) => break Err(not_begun.error.into()),
            };
            let answer = {
                let $tables = &mut transaction;
                $call.await
            };
            let (answer, again) = transaction.end(answer).await;
            if !again || tries >= TRIES {
                break answer;
            }
        }
    }};
}
