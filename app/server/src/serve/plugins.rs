//! The plugins of a running server: the directory is looked at again and again, and the executors follow it.

use std::sync::Arc;
use std::time::Duration;

use carillon_executors::dylib::{Change, DylibExecutor, Folder, Host, Plugin, Refused};
use carillon_executors::executor::Isolation;
use carillon_executors::registry::Executors;
use carillon_keeper::KeeperHandle;
use tracing::{info, warn};

use carillon_node::alerts::RefusedPlugins;
use carillon_node::config::PluginsConfig;

/// How long between two looks at the directory. A new file is used after the second look that finds it.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Keeps a node's executors as its plugins directory is.
pub(super) struct Plugins {
    folder: Folder,
    config: PluginsConfig,
    keeper: KeeperHandle,
    executors: Executors,
    /// The files that are not loaded, for those who tell people.
    refused: RefusedPlugins,
}

impl Plugins {
    /// Offers what is in the directory now. A file that cannot be trusted or used is left out, loudly; a directory that
    /// others can write to is an error. Blocks: a host process for each file.
    pub fn load(config: PluginsConfig, keeper: KeeperHandle, executors: Executors) -> Result<Self, Refused> {
        let folder = Folder::new(&config.dir, Host::new("/proc/self/exe"));
        let mut plugins = Self { folder, config, keeper, executors, refused: RefusedPlugins::default() };
        for change in plugins.folder.look() {
            match change {
                Change::Refused(refused) if refused.file == plugins.config.dir => return Err(refused),
                change => plugins.follow(change),
            }
        }
        let offered = plugins.executors.offered();
        for name in plugins.config.in_process.iter().filter(|name| !offered.contains_key(*name)) {
            warn!("plugins.in_process names {name:?}, and there is no such plugin now");
        }
        Ok(plugins)
    }

    /// The files that are not loaded, now and later.
    pub fn refused(&self) -> RefusedPlugins {
        self.refused.clone()
    }

    /// Follows the directory for ever. What goes wrong with it leaves the executors as they are.
    pub async fn watch(mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let look = move || {
                self.folder.look().into_iter().for_each(|change| self.follow(change));
                self.executors.let_go();
                self
            };
            match tokio::task::spawn_blocking(look).await {
                Ok(plugins) => self = plugins,
                // The server ends.
                Err(_) => return,
            }
        }
    }

    fn follow(&self, change: Change) {
        match change {
            Change::Found(plugin) => self.offer(plugin),
            Change::Gone(name) => {
                info!("plugin {name} is gone; nothing more is claimed for it here");
                self.executors.withdraw(&name);
            }
            Change::Refused(refused) => {
                self.refused.refused(&refused.file, &refused.reason);
                warn!("plugin {refused}");
            }
        }
    }

    fn offer(&self, plugin: Plugin) {
        let (name, version) = (plugin.description().name.clone(), plugin.description().version.clone());
        let path = plugin.file().to_owned();
        let file = path.display().to_string();
        let loaded = match self.config.isolation_of(&name) {
            Isolation::Process => Ok(DylibExecutor::in_hosts(plugin, self.keeper.clone())),
            Isolation::InProcess => DylibExecutor::in_process(plugin, self.keeper.clone()),
        };
        match loaded {
            Ok(executor) => {
                let before = self.executors.offered().get(&name).map(|before| before.description().version);
                let before = before.map(|before| format!(", in place of {before}")).unwrap_or_default();
                info!("plugin {name} {version} is loaded from {file}{before}");
                self.refused.loaded(&path);
                self.executors.offer(Arc::new(executor));
            }
            Err(reason) => {
                self.refused.refused(&path, &reason.to_string());
                warn!("plugin {file} is refused: {reason}");
            }
        }
    }
}
