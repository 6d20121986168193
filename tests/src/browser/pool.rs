//! Browsers that go from test to test: a start takes longer than most tests do.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::{Browser, Look};

/// Those that nobody uses. They end with the process.
static IDLE: Mutex<Vec<Browser>> = Mutex::new(Vec::new());

/// A browser for one test. It begins as a new one does: nobody is signed in, nothing is kept.
pub struct Borrowed(Option<Browser>);

impl Browser {
    /// One that an earlier test has given back, or a new one.
    pub fn borrow(look: Look) -> Borrowed {
        let idle = {
            let mut idle = idle();
            let fits = idle.iter().position(|browser| browser.scripts == look.scripts);
            fits.map(|at| idle.swap_remove(at))
        };
        let browser = match idle {
            Some(browser) => {
                browser.resize(look.width, look.height);
                browser.prefer(look.dark);
                browser
            }
            None => Browser::start(look),
        };
        Borrowed(Some(browser))
    }

    /// Leaves what is shown, whose server may be gone, with its cookies and complaints.
    pub fn forget(&self) {
        self.open("about:blank");
        self.devtools("Network.clearBrowserCookies", json!({}));
        let _of_another_server = self.complaints();
    }
}

impl Deref for Borrowed {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        self.0.as_ref().expect("it is here until it is given back")
    }
}

impl Drop for Borrowed {
    /// Gives it back; after a failure nobody knows its state, so it ends.
    fn drop(&mut self) {
        if let Some(browser) = self.0.take().filter(|_| !std::thread::panicking()) {
            browser.forget();
            browser.in_zone("");
            idle().push(browser);
        }
    }
}

fn idle() -> MutexGuard<'static, Vec<Browser>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}
