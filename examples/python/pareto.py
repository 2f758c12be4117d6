"""Which designs nobody beats in both throughput and write amplification: Optuna searches (pip install kvssd optuna).

    python pareto.py --trials 100 --scale 1/256
"""

from __future__ import annotations

import argparse

import kvssd
import optuna


def search(trials: int, scale: str) -> optuna.Study:
    """Try designs and when they begin to collect garbage, on drives that are half full of pairs of 1 KB."""

    def run(trial: optuna.Trial) -> tuple[float, float]:
        design = trial.suggest_categorical("design", ["original", "plus", "rhik", "pink", "kaml"])
        collect_below = {"design.gc_low_superblocks": trial.suggest_int("gc_low_superblocks", 6, 16)}
        try:
            report = kvssd.bench(design, scale=scale, fill=0.5, set=collect_below)
        except kvssd.ExperimentError as why:  # such as a drive that is full
            raise optuna.TrialPruned(str(why)) from why
        return report.runs[0]["throughput_ops_s"], report.runs[0]["write_amplification"]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.NSGAIISampler(seed=1))
    study.optimize(run, n_trials=trials)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40, help="experiments")
    parser.add_argument("--scale", default="1/512", help="the part of the testbed's capacity")
    options = parser.parse_args()
    study = search(options.trials, options.scale)
    best = {tuple(trial.values): trial.params for trial in study.best_trials}
    print(f"of {len(study.trials)} trials these are beaten by none:")
    for (throughput_ops_s, write_amplification), parameters in sorted(best.items()):
        print(f"{throughput_ops_s:10.0f} op/s  {write_amplification:6.2f} bytes written a byte  {parameters}")


if __name__ == "__main__":
    main()
