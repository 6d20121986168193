//! No statement of alerts that is asked all the time reads many rows, however many messages are kept.

use std::collections::BTreeMap;

use carillon_domain::alert::When;
use carillon_doubles::author;
use carillon_store::alerts::{DeliveryClaim, DeliveryCounts, DeliveryQuery, IncidentQuery};
use carillon_tests::conformance::alerts::{put, route, step};
use carillon_tests::databases::Server;
use mysql_async::prelude::Queryable;

use super::bench_on;

/// Messages that were sent.
const KEPT: u64 = 100_000;
/// Each of four states may be counted to its bound, once in the index and once in the answer.
const FEW: u64 = 8 * DeliveryCounts::MOST;

#[tokio::test]
async fn a_hundred_thousand_messages_are_not_counted_each_second() {
    let logging = ["--slow-query-log=1", "--long-query-time=0", "--log-output=TABLE"];
    let server = Server::start(crate::BRAND, &logging);
    let database = server.database().await;
    let bench = bench_on(&database).await;
    put(&bench, &route("ops", &[When::Failed])).await;
    bench.store.test_route("ops", &author()).await.unwrap();
    let digits = "(SELECT 0 n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL \
                  SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let sent = format!(
        "INSERT INTO alert_delivery (version, message, route, place, kind, host, made_at, state, tries, refusals, settled_at, document) \
         SELECT 1, d.message, d.route, 0, d.kind, d.host, d.made_at, 'sent', 1, 0, d.made_at, d.document FROM alert_delivery d \
         JOIN {digits} a JOIN {digits} b JOIN {digits} c JOIN {digits} e JOIN {digits} f"
    );
    database.run(&[&sent, "ANALYZE TABLE alert_delivery"]).await;

    let mut root = server.root().await;
    root.query_drop("TRUNCATE mysql.slow_log").await.unwrap();
    let counts = bench.store.delivery_counts().await.unwrap();
    assert_eq!(counts, DeliveryCounts { waiting: 1, sent: DeliveryCounts::MOST, ..DeliveryCounts::default() });
    let request = DeliveryClaim { session: bench.me, limit: 9, in_flight: BTreeMap::new(), per_host: 9 };
    assert_eq!(bench.store.claim_deliveries(&request).await.unwrap().len(), 1);
    let page = DeliveryQuery { state: Some("sending"), limit: 30, ..DeliveryQuery::default() };
    assert_eq!(bench.store.deliveries(&page).await.unwrap().items.len(), 1);
    assert_eq!(bench.store.deliveries(&DeliveryQuery { state: None, ..page }).await.unwrap().items.len(), 30);
    bench.store.incidents(&IncidentQuery { limit: 30, ..IncidentQuery::default() }).await.unwrap();
    assert_eq!(bench.store.unreadable_alerts().await.unwrap(), []);
    step(&bench).await;

    let examined = format!(
        "SELECT rows_examined, LEFT(CONVERT(sql_text USING utf8mb4), 300) FROM mysql.slow_log WHERE db = '{}' ORDER BY 1 DESC",
        database.name
    );
    let examined: Vec<(u64, String)> = root.query(examined).await.unwrap();
    assert!(
        examined.len() > 8 && examined[0].0 >= DeliveryCounts::MOST,
        "the server tells what it looks at: {examined:?}"
    );
    assert!(examined[0].0 <= FEW && FEW * 10 < KEPT, "{:?}", examined[0]);
}
