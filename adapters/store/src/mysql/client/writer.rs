//! The question that each new connection asks its server: what it is, and whether it takes writes. One round trip.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::mysql::topology::{Answers, Member, Members, ServerState};

/// No server of the address takes writes now, with the reason of each.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::mysql) struct NoWriter(pub String);

/// `VERSION()` is asked too, as a proxy answers that for itself and passes the variables on. The list of members comes last: MariaDB has no
/// such table, and MySQL shows it only to those who may read it. Their refusal takes nothing from the answers before it.
const QUESTION: &str = "SELECT VERSION(), @@version_comment; \
    SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', \
    'innodb_read_only', 'offline_mode', 'log_bin', 'binlog_format', 'innodb_flush_log_at_trx_commit', 'sync_binlog', \
    'max_allowed_packet', 'server_uuid', 'hostname', 'port', 'wsrep_on', 'wsrep_provider_options', \
    'group_replication_group_name', 'group_replication_single_primary_mode', 'group_replication_member_expel_timeout', \
    'group_replication_unreachable_majority_timeout'); \
    SHOW GLOBAL STATUS WHERE Variable_name IN ('uptime', 'wsrep_ready', 'wsrep_cluster_status', \
    'wsrep_local_state_comment', 'wsrep_cluster_size'); \
    SELECT MEMBER_ID = @@GLOBAL.server_uuid, MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members";

/// The refusals of the list: no right to read it, no such table, no such column or variable, no such database.
const NO_LIST: [u16; 7] = [1142, 1143, 1044, 1146, 1054, 1193, 1049];

/// Asks a server about itself.
pub(in crate::mysql) async fn ask(conn: &mut Conn) -> Result<Answers, mysql_async::Error> {
    let mut answers = conn.query_iter(QUESTION).await?;
    let versions: Vec<(String, String)> = answers.collect().await?;
    let mut pairs: Vec<(String, String)> = answers.collect().await?;
    pairs.extend(answers.collect::<(String, String)>().await?);
    for (version, comment) in versions {
        pairs.extend([("version".to_owned(), version), ("version_comment".to_owned(), comment)]);
    }
    let members = match answers.collect::<(Option<bool>, String, String)>().await {
        Ok(rows) => Some(rows),
        Err(mysql_async::Error::Server(error)) if NO_LIST.contains(&error.code) => None,
        Err(error) => return Err(error),
    };
    answers.drop_result().await?;
    let member = |(is_me, state, role): (Option<bool>, _, _)| Member { is_me: is_me == Some(true), state, role };
    let members = members.map(|rows| Members::of(rows.into_iter().map(member).collect()));
    Ok(Answers { state: ServerState::of(pairs), members })
}
