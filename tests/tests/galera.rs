//! The MySQL store and nodes on a Galera cluster of three members. These tests take minutes, so they run only where they are asked for.

mod on_galera;
