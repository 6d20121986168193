//! Transactions and reads that are tried again.

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

/// Reads without a transaction. It is read again where an idle connection turns out to be dead, or where two statements contradict each
/// other.
macro_rules! glance {
    ($store:expr, |$tables:ident| $call:expr) => {{
        let (mut tries, mut fresh) = (0, false);
        loop {
            tries += 1;
            let mut glance = match Transaction::glance(&$store.database, &$store.shared, fresh).await {
                Ok(glance) => glance,
                Err(not_begun) => break Err(not_begun.error.into()),
            };
            let answer = {
                let $tables = &mut glance;
                $call.await
            };
            let lost = glance.is_lost() && !fresh;
            let (answer, again) = glance.end(answer).await;
            if !(again && tries < TRIES || lost) {
                break answer;
            }
            fresh |= lost;
        }
    }};
}
