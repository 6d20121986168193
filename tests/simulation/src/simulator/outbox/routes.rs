//! The routes of a cluster: who is told of which jobs.

use std::time::Duration;

use carillon_domain::alert::{Route, Selection, Target, When};

/// So many jobs, the first ones, may be told of.
pub(in crate::simulator) const MOST_TOLD: u64 = 40;

/// Everything that a route may ask for about a run or a due time, but for its output.
const OF_JOBS: [When; 6] = [When::Failed, When::TimedOut, When::Lost, When::Skipped, When::LateStart, When::LateFinish];

fn webhook(host: &str) -> Target {
    Target::Webhook { url: format!("https://{host}/hook"), secret: None }
}

fn route(name: &str, when: &[When], jobs: Vec<String>, to: &[&str]) -> Route {
    let only = Selection { jobs, ..Selection::default() };
    let (name, when) = (name.to_owned(), when.iter().copied().collect());
    Route { name, when, only, after: 1, repeat: None, to: to.iter().copied().map(webhook).collect() }
}

/// Each sees another side: all that is told of many jobs, in storms; single jobs with every end; few words; the cluster.
pub(in crate::simulator) fn routes() -> Vec<Route> {
    let all = || (0..MOST_TOLD).map(|number| format!("job-{number}")).collect();
    let with = |when: &[When]| [when, &[When::Recovered]].concat();
    let mut routes = vec![
        route("all", &OF_JOBS, all(), &["all.example.org"]),
        route("cluster", &with(&[When::NodeLost]), Vec::new(), &["ops.example.org"]),
    ];
    for number in 0..4 {
        let jobs = vec![format!("job-{number}")];
        routes.push(route(&format!("one-{number}"), &with(&OF_JOBS), jobs, &["a.example.org", "b.example.org"]));
    }
    let (after, repeat) = (2, Some(Duration::from_secs(60)));
    let few = route("few", &with(&OF_JOBS[..3]), vec!["job-1*".to_owned()], &["few.example.org"]);
    routes.push(Route { after, repeat, ..few });
    routes
}
