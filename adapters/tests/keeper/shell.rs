//! x
use crate::tests;
tests![];
