//! Alternating measurements: if the machine slows down, both sides slow down alike.

use std::time::{Duration, Instant};

/// One line of the printed table.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) target: &'a str,
}

pub(crate) fn title(text: &str) {
    println!("\n{text}\n{:44} {:>12} {:>12} {:>8}   target", "", "this", "native", "ratio");
}

/// Prints the median of `rounds` samples without a counterpart. Each sample is the mean of `times`
/// runs.
pub(crate) fn alone(line: &Line<'_>, rounds: usize, times: u32, mut run: impl FnMut()) {
    run();
    shown(line, (0..rounds).map(|_| sample(times, &mut run)).collect());
}

/// Prints the median of samples that the caller measured.
pub(crate) fn shown(line: &Line<'_>, samples: Vec<Duration>) {
    println!(
        "{:44} {:>12} {:>12} {:>8}   {}",
        line.name,
        words(median(samples)),
        "",
        "",
        line.target
    );
}

/// Alternates `run` and `native` for `rounds` rounds, then prints both medians and the median
/// ratio.
pub(crate) fn against(line: &Line<'_>, rounds: usize, run: impl FnMut(), native: impl FnMut()) {
    against_after(Duration::ZERO, line, rounds, run, native);
}

/// Like [`against`], with a pause before each sample.
pub(crate) fn against_after(
    pause: Duration,
    line: &Line<'_>,
    rounds: usize,
    mut run: impl FnMut(),
    mut native: impl FnMut(),
) {
    run();
    native();
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        std::thread::sleep(pause);
        let our = sample(1, &mut run);
        std::thread::sleep(pause);
        let their = sample(1, &mut native);
        ratios.push(our.as_secs_f64() / their.as_secs_f64());
        ours.push(our);
        theirs.push(their);
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    println!(
        "{:44} {:>12} {:>12} {ratio:>7.2}×   {}",
        line.name,
        words(median(ours)),
        words(median(theirs)),
        line.target
    );
}

fn sample(times: u32, run: &mut impl FnMut()) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        run();
    }
    started.elapsed() / times
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

fn words(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1000.0) }
}
