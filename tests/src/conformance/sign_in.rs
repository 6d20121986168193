//! Signing in at the page: one key for all nodes, and links that are good once.

use std::time::Duration;

use super::fixture::StoreFixture;

const A_MINUTE: Duration = Duration::from_secs(60);

/// The first node chooses; all sign with that key.
pub async fn the_first_key_is_the_key_of_all(bench: &StoreFixture) {
    assert_eq!(bench.store.signing_key([7; 32]).await.unwrap(), [7; 32]);
    assert_eq!(bench.store.signing_key([8; 32]).await.unwrap(), [7; 32]);
}

/// Of two who use it one gets in, and no link stands for another.
pub async fn a_link_is_used_once(bench: &StoreFixture) {
    for link in [[1; 32], [2; 32]] {
        bench.store.add_sign_in_link(link, A_MINUTE).await.unwrap();
    }
    assert!(!bench.store.use_sign_in_link([3; 32]).await.unwrap(), "there is no such link");
    let is_there = async |link| bench.store.has_sign_in_link(link).await.unwrap();
    assert!(is_there([1; 32]).await && is_there([1; 32]).await && !is_there([3; 32]).await, "a look uses nothing up");
    assert!(bench.store.use_sign_in_link([1; 32]).await.unwrap());
    assert!(!is_there([1; 32]).await && is_there([2; 32]).await);
    assert!(!bench.store.use_sign_in_link([1; 32]).await.unwrap(), "it has been used");
    assert!(bench.store.use_sign_in_link([2; 32]).await.unwrap());
}

/// It is good for so long; a later link takes the expired ones away and leaves the others.
pub async fn a_link_expires(bench: &StoreFixture) {
    bench.go_to(100);
    bench.store.add_sign_in_link([1; 32], A_MINUTE).await.unwrap();
    bench.store.add_sign_in_link([2; 32], A_MINUTE * 2).await.unwrap();
    bench.go_to(161);
    assert!(!bench.store.has_sign_in_link([1; 32]).await.unwrap());
    assert!(!bench.store.use_sign_in_link([1; 32]).await.unwrap());
    bench.store.add_sign_in_link([3; 32], A_MINUTE).await.unwrap();
    assert!(bench.store.use_sign_in_link([2; 32]).await.unwrap());
    assert!(bench.store.use_sign_in_link([3; 32]).await.unwrap());
}
