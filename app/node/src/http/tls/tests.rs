//! The files, good and bad, and their renewal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carillon_doubles::certificates::{Authority, Issued};
use tempfile::TempDir;

use super::*;

/// A directory with the files of a server that asks clients for certificates.
fn directory(authority: &Authority, server: &Issued) -> (TempDir, TlsConfig) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "cert.pem", &server.cert, 0o644);
    write(dir.path(), "key.pem", &server.key, 0o600);
    write(dir.path(), "ca.pem", authority.pem(), 0o644);
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| dir.path().join(name));
    (dir, TlsConfig { cert, key, client_ca: Some(ca) })
}

fn write(dir: &Path, name: &str, text: &str, mode: u32) {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_told_with_a_remedy() {
    let (authority, other) = (Authority::new("ours"), Authority::new("other"));
    let (server, another) = (authority.server(), other.server());
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cut = &server.cert[..server.cert.len() / 2];
    let root_first = format!("{}{}", authority.pem(), server.cert);
    let bad_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (name, text, mode, said) in [
        ("cert.pem", "", 0o644, "http.tls.cert = "),
        ("cert.pem", "", 0o644, "is not PEM: no section"),
        ("cert.pem", "\u{0}\u{1}nonsense", 0o644, "is not PEM"),
        ("cert.pem", cut, 0o644, "is not PEM: a section of it has no end"),
        ("cert.pem", &server.key, 0o644, "holds no certificate"),
        ("cert.pem", garbage, 0o644, "holds a certificate that cannot be read"),
        ("cert.pem", &another.cert, 0o644, "is not the key of the first certificate"),
        ("cert.pem", &root_first, 0o644, "put the server's own certificate before those of its authorities"),
        ("cert.pem", &"x".repeat(1_100_000), 0o644, "is longer than 1 MiB"),
        ("key.pem", &server.cert, 0o600, "holds no private key"),
        ("key.pem", encrypted, 0o600, "is encrypted"),
        ("key.pem", bad_key, 0o600, "is a key of a kind that is not known here"),
        ("key.pem", &another.key, 0o600, "http.tls.key = "),
        ("key.pem", &server.key, 0o644, "can be read or written by others (its mode is 0644)"),
        ("key.pem", &server.key, 0o604, "can be read or written by others"),
        ("ca.pem", &server.key, 0o644, "http.tls.client_ca = "),
        ("ca.pem", &server.key, 0o644, "holds no certificate"),
        ("ca.pem", garbage, 0o644, "its certificate 1"),
    ] {
        let (dir, files) = directory(&authority, &server);
        write(dir.path(), name, text, mode);
        let error = Tls::new(files).unwrap_err().to_string();
        assert!(error.contains(said) && error.starts_with("http.tls."), "{name} {mode:o}: {error:?} lacks {said:?}");
        assert!(!error.contains("AAAA"), "nothing of a key is told: {error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_by_its_key() {
    let authority = Authority::new("ours");
    for (name, key) in [("cert.pem", "http.tls.cert"), ("key.pem", "http.tls.key"), ("ca.pem", "http.tls.client_ca")] {
        let (dir, files) = directory(&authority, &authority.server());
        fs::remove_file(dir.path().join(name)).unwrap();
        let error = Tls::new(files.clone()).unwrap_err().to_string();
        assert!(error.starts_with(key) && error.contains("cannot be read: No such file"), "{error}");
        fs::create_dir(dir.path().join(name)).unwrap();
        let error = Tls::new(files).unwrap_err().to_string();
        assert!(error.contains("is not a regular file"), "{error}");
    }
}

#[test]
fn a_key_in_a_file_of_its_owner_is_trusted() {
    let authority = Authority::new("ours");
    for mode in [0o600, 0o400, 0o700] {
        let (dir, files) = directory(&authority, &authority.server());
        fs::set_permissions(dir.path().join("key.pem"), fs::Permissions::from_mode(mode)).unwrap();
        Tls::new(files).unwrap();
    }
}

#[test]
fn an_expired_certificate_is_served_and_counted() {
    let authority = Authority::new("ours");
    let (_dir, files) = directory(&authority, &authority.expired_server());
    let tls = Tls::new(files).unwrap();
    assert!(tls.expires_in_seconds() < -86_400 * 365, "it expired in 2020: {}", tls.expires_in_seconds());
    let (_dir, files) = directory(&authority, &authority.server());
    assert!(Tls::new(files).unwrap().expires_in_seconds() > 86_400);
}

#[tokio::test(start_paused = true)]
async fn renewed_files_are_served_and_broken_ones_are_not() {
    let authority = Authority::new("ours");
    let (dir, files) = directory(&authority, &authority.expired_server());
    let tls = Arc::new(Tls::new(files).unwrap());
    let watch = tokio::spawn(Arc::clone(&tls).watch());
    let before = tls.config();
    write(dir.path(), "cert.pem", "broken", 0o644);
    until(|| tls.reloads_refused() == 1).await;
    assert!(Arc::ptr_eq(&before, &tls.config()), "the former one is served on");
    let renewed = authority.server();
    write(dir.path(), "key.pem", &renewed.key, 0o600);
    write(dir.path(), "cert.pem", &renewed.cert, 0o644);
    until(|| tls.expires_in_seconds() > 0).await;
    // A new name for the same content, as tools for renewal put it in place.
    let after = tls.config();
    fs::rename(dir.path().join("cert.pem"), dir.path().join("cert-2.pem")).unwrap();
    std::os::unix::fs::symlink("cert-2.pem", dir.path().join("cert.pem")).unwrap();
    until(|| !Arc::ptr_eq(&after, &tls.config())).await;
    watch.abort();
}

/// Time stands still but for the sleeps of those who wait.
async fn until(mut done: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if done() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    panic!("it never came");
}
