//! The generalized harmonic numbers of theta 0.99: zeta(n) = 1/1^0.99 + 1/2^0.99 + .. + 1/n^0.99.

/// The exponent of the zipfian law (YCSB, ZipfianGenerator.java, `ZIPFIAN_CONSTANT`).
const THETA: f64 = 0.99;

/// The Riemann zeta function at 0.99, which is where the Euler-Maclaurin expansion of the sums begins.
const RIEMANN_ZETA: f64 = -99.423_512_977_728_18;

/// Up to this many terms are added one by one. Beyond, the first term that the expansion leaves out is below 1e-13.
const TERMS_ADDED_MAX: u64 = 64;

/// The sum of the first `items` terms, in constant time: at 100 million items adding them up would take seconds.
pub(super) fn zeta(items: u64) -> f64 {
    if items <= TERMS_ADDED_MAX {
        return (1..=items).map(|item| hundredth_root(item as f64) / item as f64).sum();
    }
    let n = items as f64;
    let root = hundredth_root(n);
    let first = THETA / (12.0 * n);
    let third = THETA * (THETA + 1.0) * (THETA + 2.0) / (720.0 * n * n * n);
    RIEMANN_ZETA + 100.0 * root + root / n * (0.5 - first + third)
}

/// `base`^0.01 for a positive `base`, to about 15 digits.
///
/// The digits of 0.01 in base two say which of the square roots of square roots to multiply. `f64::powf` is faster, but
/// its last digit varies with the machine, and with it would the operations of a seed.
pub(super) fn hundredth_root(base: f64) -> f64 {
    let (mut power, mut root, mut exponent) = (1.0, base, 0.01);
    while exponent > 0.0 {
        root = root.sqrt();
        exponent *= 2.0;
        if exponent >= 1.0 {
            power *= root;
            exponent -= 1.0;
        }
    }
    power
}

/// `base`^100, to about 13 digits.
pub(super) fn hundredth_power(base: f64) -> f64 {
    let square = |number: f64| number * number;
    let power_4 = square(square(base));
    let power_32 = square(square(square(power_4)));
    power_4 * power_32 * square(power_32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_sum() {
        let mut sum = 0.0;
        for items in 1..=1_000_000u64 {
            sum += (items as f64).powf(-THETA);
            if items < 1000 || items % 99_991 == 0 {
                assert!((zeta(items) - sum).abs() < 1e-10, "{items}: {} and {sum}", zeta(items));
            }
        }
    }

    #[test]
    fn the_constant_of_ycsb_is_the_sum_of_ten_billion() {
        assert!((zeta(10_000_000_000) - 26.469_028_201_783_02).abs() < 1e-9);
    }

    #[test]
    fn roots_and_powers_agree_with_the_library() {
        for base in [1e-10, 0.3, 1.0, 2.0, 65.0, 1e6, 123_456_789.0, 1e18] {
            let root = hundredth_root(base);
            assert!((root / f64::powf(base, 0.01) - 1.0).abs() < 1e-14, "{base}");
            assert!((hundredth_power(root) / base - 1.0).abs() < 1e-12, "{base}");
        }
    }
}
