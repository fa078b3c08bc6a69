//! Numbers in decimal digits, as nodes and this library write them.

/// The number in these digits.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// The number in these digits, without leading zeros: as servers write it, and in no other way.
pub fn canonical(digits: &[u8]) -> Option<u64> {
    match digits {
        b"0" | [b'1'..=b'9', ..] => number(digits),
        _ => None,
    }
}

/// The same behind an optional minus.
pub fn integer(text: &[u8]) -> Option<i64> {
    match text {
        b"-0" => None,
        [b'-', digits @ ..] => 0_i64.checked_sub_unsigned(canonical(digits)?),
        digits => i64::try_from(canonical(digits)?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_digits_and_nothing_else() {
        for exact in [0, 7, 42, i64::MAX as u64, u64::MAX] {
            let text = exact.to_string();
            assert_eq!(number(text.as_bytes()), Some(exact));
            assert_eq!(canonical(text.as_bytes()), Some(exact));
            assert_eq!(number(format!("00{text}").as_bytes()), Some(exact));
            assert_eq!(canonical(format!("0{text}").as_bytes()), None);
        }
        for other in "|+1|-1|1.5|1e3| 1|1 |/|:|18446744073709551616".split('|') {
            assert_eq!(number(other.as_bytes()), None, "{other:?}");
            assert_eq!(canonical(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn an_integer_may_be_negative() {
        for exact in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(integer(exact.to_string().as_bytes()), Some(exact));
        }
        for other in "-0|-|--1|-01|01|9223372036854775808|-9223372036854775809".split('|') {
            assert_eq!(integer(other.as_bytes()), None, "{other:?}");
        }
    }
}
