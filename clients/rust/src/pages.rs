//! Listings that go on from page to page.

use crate::Error;
use crate::models::{AuditEntry, AuditPage, Delivery, DeliveryPage, Job, JobPage, Run, RunPage};

/// A page of a listing.
pub trait Page {
    /// One of the things that are listed.
    type Item;
    /// The items, and where the next page begins.
    fn parts(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! page {
    ($($page:ty => $item:ty,)*) => {
        $(impl Page for $page {
            type Item = $item;
            fn parts(self) -> (Vec<$item>, Option<String>) {
                (self.items, self.next_cursor)
            }
        })*
    };
}

page! {
    JobPage => Job,
    RunPage => Run,
    DeliveryPage => Delivery,
    AuditPage => AuditEntry,
}

/// The items of all pages, read page by page as they are needed.
///
/// ```no_run
/// # use carillon_client::{Client, Error, ListJobs, pages};
/// # fn main() -> Result<(), Error> {
/// # let client = Client::from_environment()?;
/// let all = ListJobs { namespace: Some("*".into()), ..ListJobs::default() };
/// for job in pages(|cursor| client.list_jobs(&ListJobs { cursor, ..all.clone() })) {
///     println!("{}", job?.name);
/// }
/// # Ok(())
/// # }
/// ```
pub fn pages<P: Page, F: FnMut(Option<String>) -> Result<P, Error>>(read: F) -> Pages<P, F> {
    Pages { read, items: Vec::new().into_iter(), next: Some(None) }
}

/// See [`pages`].
pub struct Pages<P: Page, F> {
    read: F,
    items: std::vec::IntoIter<P::Item>,
    /// The cursor of the next page, if there is one.
    next: Option<Option<String>>,
}

impl<P: Page, F: FnMut(Option<String>) -> Result<P, Error>> Iterator for Pages<P, F> {
    type Item = Result<P::Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(Ok(item));
            }
            // After a fault there is no page any more.
            match (self.read)(self.next.take()?) {
                Ok(page) => {
                    let (items, cursor) = page.parts();
                    self.items = items.into_iter();
                    self.next = cursor.map(Some);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
