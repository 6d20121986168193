//! The findings of a scenario: rows to be judged, distributions of lag, costs of loads, series to be plotted.

use serde_json::{Value, json};

use crate::ceilings::Around;
use crate::lags::Lags;
use crate::meter::Cost;

/// One figure.
#[derive(Debug, Clone)]
pub struct Row {
    what: String,
    unit: &'static str,
    value: f64,
    /// The must and the aim; either may be more or less than that, as `less_is_better` says.
    bounds: Option<(f64, f64)>,
    less_is_better: bool,
    ceiling: Option<(String, Around)>,
    /// The same for its share of the ceiling, in per cent.
    share_bounds: Option<(f64, f64)>,
    note: String,
}

impl Row {
    /// A figure with its unit.
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        let what = what.into();
        Self {
            what,
            unit,
            value,
            bounds: None,
            less_is_better: false,
            ceiling: None,
            share_bounds: None,
            note: String::new(),
        }
    }

    /// It must be at least so much, and is aimed at being at least so much.
    pub fn at_least(mut self, must: f64, aim: f64) -> Self {
        self.bounds = Some((must, aim));
        self
    }

    /// It must be at most so much, and is aimed at being at most so much.
    pub fn at_most(mut self, must: f64, aim: f64) -> Self {
        self.bounds = Some((must, aim));
        self.less_is_better = true;
        self
    }

    /// The raw ceiling beside which it stands.
    pub fn beside(mut self, ceiling: &str, around: Around) -> Self {
        self.ceiling = Some((ceiling.to_owned(), around));
        self
    }

    /// Its share of the ceiling must be at least so many per cent, and is aimed at being at least so many.
    pub fn share_at_least(mut self, must: f64, aim: f64) -> Self {
        self.share_bounds = Some((must, aim));
        self
    }

    /// How it was measured.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn share(&self) -> Option<f64> {
        let most = self.ceiling.as_ref().map(|(_, around)| around.mean());
        most.filter(|most| *most > 0.0).map(|most| self.value * 100.0 / most)
    }

    /// `aim`, `must` or `below`: what of its bounds it keeps.
    fn verdict(&self) -> Option<&'static str> {
        let keeps = |bound: f64| if self.less_is_better { self.value <= bound } else { self.value >= bound };
        let of_value = self.bounds.map(|(must, aim)| (keeps(must), keeps(aim)));
        let of_share = self.share_bounds.map(|(must, aim)| {
            let share = self.share().unwrap_or(0.0);
            (share >= must, share >= aim)
        });
        let (mut musts, mut aims) = (true, true);
        for (must, aim) in [of_value, of_share].into_iter().flatten() {
            musts &= must;
            aims &= aim;
        }
        let judged = of_value.is_some() || of_share.is_some();
        judged.then_some(if aims {
            "aim"
        } else if musts {
            "must"
        } else {
            "below"
        })
    }

    fn json(&self, judged: bool) -> Value {
        let bounds = |(must, aim): (f64, f64)| json!({"must": must, "aim": aim});
        let ceiling = |(name, around): &(String, Around)| {
            let Around { before, after } = around;
            json!({"what": name, "value": around.mean(), "before": before, "after": after})
        };
        json!({
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "less is better": self.less_is_better,
            "bounds": self.bounds.map(bounds),
            "ceiling": self.ceiling.as_ref().map(ceiling),
            "share": self.share(),
            "share bounds": self.share_bounds.map(bounds),
            "verdict": self.verdict().filter(|_| judged),
            "note": self.note,
        })
    }
}

/// All that a scenario found.
#[derive(Debug, Default)]
pub struct Found {
    rows: Vec<Row>,
    lags: Vec<Value>,
    costs: Vec<Value>,
    series: Vec<Value>,
    /// Why it found no more.
    pub failed: Option<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Found {
    /// A figure.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// A distribution of lag under a load.
    pub fn lags(&mut self, load: &str, measured: &str, lags: &Lags) {
        self.lags.push(lags.json(load, measured));
    }

    /// The cost of a load.
    pub fn cost(&mut self, load: &str, cost: &Cost) {
        self.costs.push(cost.json(load));
    }

    /// Points of a curve.
    pub fn series(&mut self, name: &str, points: &[(f64, f64)]) {
        self.series.push(json!({"name": name, "points": points}));
    }

    /// As the report keeps it.
    pub fn json(&self, judged: bool) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| row.json(judged)).collect();
        json!({
            "failed": self.failed,
            "seconds": self.seconds,
            "rows": rows,
            "lags": self.lags,
            "costs": self.costs,
            "series": self.series,
        })
    }
}
