//! From a connection to a request that may be answered: who calls, which host, how long a body, which query.

pub(in crate::http) mod access;
pub(in crate::http) mod body;
pub(in crate::http) mod caller;
pub(in crate::http) mod etag;
pub(in crate::http) mod hosts;
pub(in crate::http) mod query;
pub(in crate::http) mod token_file;
pub(in crate::http) mod unread_body;
