//! How many times a second the disk of the database makes 4 KiB durable.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Appends and syncs in a directory for so long; how many a second.
pub fn synced_appends(directory: &Path, time: Duration) -> f64 {
    let path = directory.join("bench-appends");
    let mut file = File::create(&path).expect("root may write beside the database's files");
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        file.write_all(&[7; 4096]).expect("there is space");
        file.sync_data().expect("the disk syncs");
        count += 1;
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    std::fs::remove_file(path).expect("it can be deleted");
    rate
}
