"""Two sides in alternation: what counts is the ratio within a pair, since its two runs see much the same machine."""
import os
import statistics


def compare(what, sides, pairs):
    """Runs both `sides` (name -> function that gives samples a second) `pairs` times; who goes first alternates.

    Prints each pair and the median of the ratios first side / second side, which it @returns."""
    (first, _), (second, _) = sides.items()
    ratios = []
    for pair in range(pairs):
        load_before = os.getloadavg()[0]
        rates = {name: sides[name]() for name in (list(sides) if pair % 2 == 0 else reversed(sides))}
        ratios.append(rates[first] / rates[second])
        print(f"{what}  pair {pair + 1}  {first} {rates[first]:7.0f}  {second} {rates[second]:7.0f} samples/s  "
              f"ratio {ratios[-1]:.2f}  load {load_before:.1f} -> {os.getloadavg()[0]:.1f}", flush=True)
    print(f"{what}  ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}", flush=True)
    return ratios
