//! Troubles of this node: its clock, its disks, its plugins, its certificate, and a database that was away.
//!
//! Losses of nodes and of commits are written by the calls that find them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_domain::alert::{Class, Fact, Part, Subject, SubjectKey, Trouble, What, When};
use carillon_domain::duration::spoken;
use carillon_domain::time::Timestamp;
use carillon_keeper::boottime_ms;
use carillon_store::alerts::IncidentQuery;
use carillon_store::{Store, StoreError};
use nix::sys::statvfs::statvfs;
use tracing::{debug, info, warn};

use super::away::AwayNote;
use super::refused_plugins::RefusedPlugins;
use super::state::{Key, Told, drifts, is_full};
use crate::engine::EngineHandle;
use crate::http::Tls;

/// How long between two looks. They read nothing but memory.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long between two looks at the disks, which take another thread.
const DISKS_EVERY: Duration = Duration::from_secs(5);
/// A database that has answered nothing for so long is away. The engine asks it every three seconds or more often.
const AWAY_AFTER_MS: u64 = 5_000;
/// A certificate is told of so long before it ends.
pub const ENDS_SOON: Duration = Duration::from_secs(14 * 86_400);
/// How many incidents of former sessions are looked at.
const INCIDENTS: usize = 1_000;

/// Directories whose disks are looked at, each with the path at which people find it.
#[derive(Debug, Clone, Default)]
pub struct Places(pub(crate) BTreeSet<PathBuf>);

impl Places {
    /// Of directories as the configuration names them, which may be relative.
    pub fn of(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(directories.into_iter().map(|directory| path::absolute(&directory).unwrap_or(directory)).collect())
    }
}

/// The disk of a place: its bytes, and the free ones.
type Disk = (PathBuf, u64, u64);

/// The loop and what it knows.
pub(super) struct Watcher {
    store: Arc<dyn Store>,
    engine: EngineHandle,
    tls: Option<Arc<Tls>>,
    places: Places,
    refused: RefusedPlugins,
    away: AwayNote,
    told: Told,
    /// When the database last answered before it went away, on the boot clock.
    away_since_ms: Option<u64>,
    /// The same, and when it answered again: to be told.
    was_away: Vec<(u64, u64)>,
    /// Whether it is known which troubles a former session of the node has told, and which it could not tell.
    knows_former: bool,
    /// The disks as they were found last.
    disks: Option<(Instant, Vec<Disk>)>,
}

impl Watcher {
    pub fn new(
        store: Arc<dyn Store>,
        engine: EngineHandle,
        tls: Option<Arc<Tls>>,
        places: Places,
        refused: RefusedPlugins,
        away: AwayNote,
    ) -> Self {
        let (told, away_since_ms, was_away, knows_former, disks) = (Told::default(), None, Vec::new(), false, None);
        Self { store, engine, tls, places, refused, away, told, away_since_ms, was_away, knows_former, disks }
    }

    /// Looks for ever.
    pub async fn run(mut self) {
        loop {
            self.look_at_database();
            if self.away_since_ms.is_none()
                && let Err(error) = self.tell().await
            {
                debug!(%error, "troubles of this node could not be told; they are told later");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A database that is away can be told of only when it is back.
    fn look_at_database(&mut self) {
        let (now_ms, heard_ms) = (boottime_ms(), self.engine.counts().database_heard_ms);
        match self.away_since_ms {
            None if heard_ms > 0 && now_ms.saturating_sub(heard_ms) > AWAY_AFTER_MS => {
                warn!(
                    "the database has not answered for {}",
                    spoken(Duration::from_millis(now_ms.saturating_sub(heard_ms)))
                );
                self.away.write_of(&self.engine);
                self.away_since_ms = Some(heard_ms);
            }
            Some(since_ms) if heard_ms > since_ms => {
                info!(
                    "the database is back after {}",
                    spoken(Duration::from_millis(heard_ms.saturating_sub(since_ms)))
                );
                self.was_away.push((since_ms, heard_ms));
                self.away_since_ms = None;
            }
            _ => {}
        }
    }

    async fn tell(&mut self) -> Result<(), StoreError> {
        if !self.knows_former {
            self.tell_former_away().await?;
            self.learn_former().await?;
        }
        while let Some((from_ms, until_ms)) = self.was_away.first().copied() {
            let now = self.store.now().await?;
            let ago = |ms: u64| now - Duration::from_millis(boottime_ms().saturating_sub(ms));
            let trouble = Trouble::DatabaseAway { from: ago(from_ms), until: ago(until_ms) };
            self.tell_one(now, self.part(None), What::Trouble(trouble)).await?;
            self.was_away.remove(0);
            self.away.remove();
        }
        if self.disks.as_ref().is_none_or(|(at, _)| at.elapsed() >= DISKS_EVERY) {
            self.disks = Some((Instant::now(), self.look_at_disks().await));
        }
        let (open, looked_at) = self.look();
        for (key, trouble) in self.told.news(&open, &looked_at) {
            let now = self.store.now().await?;
            let is_open = trouble.is_some();
            self.tell_one(now, key.1.clone(), trouble.map_or(What::Over(key.0), What::Trouble)).await?;
            self.told.told(key, is_open);
        }
        Ok(())
    }

    async fn tell_one(&self, at: Timestamp, part: Part, what: What) -> Result<(), StoreError> {
        self.store.tell_fact(&Fact { at, subject: Subject::Cluster(part), what }).await.map(drop)
    }

    /// A former session of this node ended while the database was away. It is told to have been so until now, as nobody looked between.
    async fn tell_former_away(&mut self) -> Result<(), StoreError> {
        let Some(from) = self.away.read() else { return Ok(()) };
        let until = self.store.now().await?;
        let trouble = Trouble::DatabaseAway { from: from.min(until), until };
        self.tell_one(until, self.part(None), What::Trouble(trouble)).await?;
        self.away.remove();
        Ok(())
    }

    /// A former session of this node may have told of a plugin whose file has gone since.
    async fn learn_former(&mut self) -> Result<(), StoreError> {
        let query = IncidentQuery { limit: INCIDENTS, ..IncidentQuery::default() };
        for incident in self.store.incidents(&query).await? {
            if let (Class::PluginRefused, SubjectKey::Cluster(part)) = (incident.key.class, incident.key.subject)
                && part.node.as_deref() == Some(self.engine.node())
            {
                self.told.found_open((When::PluginRefused, part));
            }
        }
        self.knows_former = true;
        Ok(())
    }

    /// The troubles that are open now, and all that were looked at.
    fn look(&self) -> (BTreeMap<Key, Trouble>, BTreeSet<Key>) {
        let (mut open, mut looked_at) = (BTreeMap::new(), BTreeSet::new());
        let mut note = |key: Key, trouble: Option<Trouble>| {
            looked_at.insert(key.clone());
            open.extend(trouble.map(|trouble| (key, trouble)));
        };
        let clock = (When::ClockDrift, self.part(None));
        // The counter tells how far the database is ahead.
        let drift_ms = self.engine.counts().clock_offset_ms.saturating_neg();
        let drift = drifts(self.told.is_open(&clock), drift_ms).then_some(Trouble::ClockDrift { drift_ms });
        note(clock, drift);
        for (place, bytes, free) in self.disks.iter().flat_map(|(_, disks)| disks) {
            let path = place.display().to_string();
            let key = (When::DiskFull, self.part(Some(&path)));
            let full = is_full(self.told.is_open(&key), *bytes, *free);
            note(key, full.then_some(Trouble::DiskFull { path, free: *free }));
        }
        for (file, why) in self.refused.now() {
            let file = file.display().to_string();
            note((When::PluginRefused, self.part(Some(&file))), Some(Trouble::PluginRefused { file, why }));
        }
        if let Some(tls) = &self.tls {
            let (file, ends_in_seconds, ends_at) =
                (tls.certificate().display().to_string(), tls.expires_in_seconds(), tls.expires_at());
            let soon = ends_in_seconds < i64::try_from(ENDS_SOON.as_secs()).unwrap_or(i64::MAX);
            let key = (When::CertificateExpires, self.part(Some(&file)));
            note(key, soon.then_some(Trouble::CertificateExpires { file, ends_at }));
        }
        (open, looked_at)
    }

    /// The disk of each place. A place that cannot be looked at is left out.
    async fn look_at_disks(&self) -> Vec<Disk> {
        let places = self.places.0.clone();
        // A network disk may let it wait.
        let look = move || places.into_iter().filter_map(|place| disk(&place).map(|(all, free)| (place, all, free)));
        tokio::task::spawn_blocking(move || look().collect()).await.unwrap_or_default()
    }

    fn part(&self, thing: Option<&str>) -> Part {
        Part { node: Some(self.engine.node().to_owned()), thing: thing.map(str::to_owned) }
    }
}

/// The bytes of the disk of a place, and the free ones.
pub fn disk(place: &Path) -> Option<(u64, u64)> {
    let state = statvfs(place).ok()?;
    let size = state.fragment_size();
    Some((state.blocks().saturating_mul(size), state.blocks_available().saturating_mul(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_told_by_its_whole_path_and_once() {
        let here = std::env::current_dir().unwrap();
        let places = Places::of([".", "./data", "data", "/var/lib"].map(PathBuf::from));
        assert_eq!(places.0, BTreeSet::from([here.clone(), here.join("data"), PathBuf::from("/var/lib")]));
    }
}
