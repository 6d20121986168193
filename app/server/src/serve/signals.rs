//! SIGTERM, Ctrl-C and a terminal that goes away: the first drains, the second cancels what runs.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tracing::{info, warn};

use carillon_node::engine::Shutdown;

/// Turns signals into orders until the engine is gone.
pub(super) async fn watch(orders: UnboundedSender<Shutdown>) {
    let kinds = (SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup());
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) = (signal(kinds.0), signal(kinds.1), signal(kinds.2))
    else {
        return warn!("signals cannot be watched: the server will not drain when it is told to stop");
    };
    let mut order = Shutdown::Drain;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        match order {
            Shutdown::Drain => info!("draining: nothing new is started; once more to cancel what runs"),
            Shutdown::Now => info!("cancelling what runs"),
        }
        if orders.send(order).is_err() {
            return;
        }
        order = Shutdown::Now;
    }
}
