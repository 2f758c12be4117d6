//! The direct serialization graph, and the cycles in it.

use crate::transactions::row::RowId;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Transactions from which a short cycle is looked for.
const STARTS_MAX: usize = 64;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DependencyKind {
    /// It wrote what the other read.
    #[serde(rename = "wr")]
    WriteRead,
    /// It wrote the version before the other's.
    #[serde(rename = "ww")]
    WriteWrite,
    /// It read the version before the other's.
    #[serde(rename = "rw")]
    ReadWrite,
}

impl fmt::Display for DependencyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DependencyKind::WriteRead => "wr",
            DependencyKind::WriteWrite => "ww",
            DependencyKind::ReadWrite => "rw",
        })
    }
}

/// An edge of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// Who comes before, by its number among the committed transactions.
    pub before: u32,
    /// Who comes after.
    pub after: u32,
    /// Why.
    pub kind: DependencyKind,
    /// Because of which row.
    pub row: String,
}

/// Transactions each of which comes before the next one, and the last before the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cycle {
    /// The name of the anomaly: `G0`, `G1c`, `G-single` or `G2` (Adya).
    pub name: &'static str,
    /// Its edges.
    pub dependencies: Vec<Dependency>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        for Dependency { before, kind, row, .. } in &self.dependencies {
            write!(f, " C{before} -{kind} {row}->")?;
        }
        self.dependencies.first().map_or(Ok(()), |first| write!(f, " C{}", first.before))
    }
}

#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    kind: DependencyKind,
    row: RowId,
}

/// Transactions, numbered from 0 on, and their dependencies.
pub(super) struct Graph {
    nodes: usize,
    edges: Vec<Edge>,
}

impl Graph {
    pub(super) fn new(nodes: usize) -> Self {
        Graph { nodes, edges: Vec::new() }
    }

    /// Nothing depends on itself.
    pub(super) fn add(&mut self, from: u32, to: u32, kind: DependencyKind, row: RowId) {
        if from != to {
            self.edges.push(Edge { from, to, kind, row });
        }
    }

    pub(super) fn edges(&self) -> usize {
        self.edges.len()
    }

    /// A short cycle, if there is one.
    pub(super) fn cycle(&self) -> Option<Cycle> {
        let rest = self.without_ends(|edge| (edge.from, edge.to));
        let rest = Graph { nodes: self.nodes, edges: rest }.without_ends(|edge| (edge.to, edge.from));
        let mut from: BTreeMap<u32, Vec<Edge>> = BTreeMap::new();
        for edge in rest {
            from.entry(edge.from).or_default().push(edge);
        }
        let starts = from.keys().take(STARTS_MAX);
        let shortest = starts.filter_map(|start| cycle_through(*start, &from)).min_by_key(Vec::len)?;
        Some(Cycle {
            name: name(&shortest),
            dependencies: shortest
                .into_iter()
                .map(|Edge { from, to, kind, row }| Dependency { before: from, after: to, kind, row: row.to_string() })
                .collect(),
        })
    }

    /// The edges that are left when transactions that nothing leads to are taken away, again and again (Kahn). `ends` gives an
    /// edge's beginning and end, or the other way round.
    fn without_ends(&self, ends: impl Fn(&Edge) -> (u32, u32)) -> Vec<Edge> {
        let mut incoming = vec![0u32; self.nodes];
        let mut first = vec![0usize; self.nodes + 1];
        for edge in &self.edges {
            let (from, to) = ends(edge);
            incoming[to as usize] += 1;
            first[from as usize + 1] += 1;
        }
        for node in 0..self.nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut targets = vec![0u32; self.edges.len()];
        for edge in &self.edges {
            let (from, to) = ends(edge);
            targets[next[from as usize]] = to;
            next[from as usize] += 1;
        }
        let mut free: Vec<u32> = (0..self.nodes as u32).filter(|&node| incoming[node as usize] == 0).collect();
        let mut is_taken = vec![false; self.nodes];
        while let Some(node) = free.pop() {
            is_taken[node as usize] = true;
            for &target in &targets[first[node as usize]..first[node as usize + 1]] {
                incoming[target as usize] -= 1;
                if incoming[target as usize] == 0 {
                    free.push(target);
                }
            }
        }
        let stays = |edge: &&Edge| !is_taken[edge.from as usize] && !is_taken[edge.to as usize];
        self.edges.iter().filter(stays).copied().collect()
    }
}

/// The shortest cycle through a transaction (a search in breadth).
fn cycle_through(start: u32, from: &BTreeMap<u32, Vec<Edge>>) -> Option<Vec<Edge>> {
    let mut came_by: BTreeMap<u32, Edge> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(node) = next.pop_front() {
        for &edge in from.get(&node).into_iter().flatten() {
            if edge.to == start {
                let mut cycle = vec![edge];
                while cycle[cycle.len() - 1].from != start {
                    cycle.push(came_by[&cycle[cycle.len() - 1].from]);
                }
                cycle.reverse();
                return Some(cycle);
            }
            came_by.entry(edge.to).or_insert_with(|| {
                next.push_back(edge.to);
                edge
            });
        }
    }
    None
}

fn name(cycle: &[Edge]) -> &'static str {
    let count = |kind| cycle.iter().filter(|edge| edge.kind == kind).count();
    match (count(DependencyKind::ReadWrite), count(DependencyKind::WriteRead)) {
        (0, 0) => "G0",
        (0, _) => "G1c",
        (1, _) => "G-single",
        _ => "G2",
    }
}
