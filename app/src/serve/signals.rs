//! SIGTERM and Ctrl-C: the first drains, the second cancels what runs (SPEC section 8).

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tracing::{info, warn};

use crate::engine::Shutdown;

/// Turns signals into orders until the engine is gone.
pub(super) async fn watch(orders: UnboundedSender<Shutdown>) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return warn!("signals cannot be watched: the server will not drain when it is told to stop");
    };
    let mut order = Shutdown::Drain;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
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
