//! From a connection to a request that may be answered: who calls, which host, how long a body, which query.

pub(crate) mod access;
pub(crate) mod author;
pub(crate) mod body;
pub(crate) mod caller;
pub(in crate::http) mod etag;
pub(crate) mod hosts;
pub(crate) mod query;
pub(crate) mod session;
pub(in crate::http) mod token_file;
pub(in crate::http) mod unread_body;
