//! The lab of larder: experiments, contestants, statistics, results and reports.
//!
//! The path of a measurement, and the folder of each step:
//!
//! 1. an [`experiments`] entry makes a plan: which contestant with which factors, in which group;
//! 2. [`measure`] runs the groups in random rounds, each cell in a fresh process, and watches the noise;
//! 3. [`store`] keeps the [`model::RunRecord`]: machine, seed, every sample;
//! 4. the experiment turns the samples into a [`model::Analysis`] with the help of [`stats`];
//! 5. [`report`] draws it: terminal, HTML, Markdown, JSON.

#![forbid(unsafe_op_in_unsafe_fn)]

pub mod calc;
pub mod cli;
pub mod contestants;
pub mod experiments;
pub mod frame;
pub mod machine;
pub mod measure;
pub mod model;
pub mod preload;
pub mod published;
pub mod report;
pub mod stats;
pub mod store;

#[cfg(doctest)]
#[doc = include_str!("../CONTRIBUTING.md")]
struct Contributing;
