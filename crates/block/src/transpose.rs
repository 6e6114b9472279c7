//! Transposes 8 x 8 bytes in registers: the kernel of encoding and decoding [transposed
//! columns](crate::transposed).

/// Transposes an 8 x 8 matrix of bytes: byte `c` of word `r` becomes byte `r` of word `c`.
#[inline(always)]
pub(crate) fn transpose(w: [u64; 8]) -> [u64; 8] {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { transpose_sse2(w) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        transpose_portable(w)
    }
}

/// [`transpose`] of words that are scattered in memory. They are loaded directly into registers. If
/// they were first copied to an array, the processor would write it one word at a time and read it
/// two words at a time, and would have to wait.
#[inline(always)]
pub(crate) fn transpose_from(places: [&[u8; 8]; 8]) -> [u64; 8] {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { transpose_places_sse2(places) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        transpose_portable(places.map(|bytes| u64::from_le_bytes(*bytes)))
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_places_sse2(places: [&[u8; 8]; 8]) -> [u64; 8] {
    use std::arch::x86_64::{__m128i, _mm_loadl_epi64};
    // SAFETY: the instruction reads eight bytes at any alignment, and the array has eight.
    let rows = places.map(|bytes| unsafe { _mm_loadl_epi64(bytes.as_ptr().cast::<__m128i>()) });
    transpose_rows_sse2(rows)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_sse2(w: [u64; 8]) -> [u64; 8] {
    use std::arch::x86_64::_mm_cvtsi64_si128;
    transpose_rows_sse2(w.map(|word| _mm_cvtsi64_si128(word as i64)))
}

/// [`transpose`] with 12 interleaving instructions, instead of 72 that shift and mask.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_rows_sse2(w: [std::arch::x86_64::__m128i; 8]) -> [u64; 8] {
    use std::arch::x86_64::{
        _mm_cvtsi128_si64 as low_half, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
        _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
    };
    // Interleave rows by bytes, pairs by words and fours by double words: then each register has
    // two columns. Written out, because a closure here would not be inlined.
    let rows_01 = _mm_unpacklo_epi8(w[0], w[1]);
    let rows_23 = _mm_unpacklo_epi8(w[2], w[3]);
    let rows_45 = _mm_unpacklo_epi8(w[4], w[5]);
    let rows_67 = _mm_unpacklo_epi8(w[6], w[7]);
    let (top_0123, top_4567) =
        (_mm_unpacklo_epi16(rows_01, rows_23), _mm_unpackhi_epi16(rows_01, rows_23));
    let (end_0123, end_4567) =
        (_mm_unpacklo_epi16(rows_45, rows_67), _mm_unpackhi_epi16(rows_45, rows_67));
    let columns_01 = _mm_unpacklo_epi32(top_0123, end_0123);
    let columns_23 = _mm_unpackhi_epi32(top_0123, end_0123);
    let columns_45 = _mm_unpacklo_epi32(top_4567, end_4567);
    let columns_67 = _mm_unpackhi_epi32(top_4567, end_4567);
    [
        low_half(columns_01) as u64,
        low_half(_mm_unpackhi_epi64(columns_01, columns_01)) as u64,
        low_half(columns_23) as u64,
        low_half(_mm_unpackhi_epi64(columns_23, columns_23)) as u64,
        low_half(columns_45) as u64,
        low_half(_mm_unpackhi_epi64(columns_45, columns_45)) as u64,
        low_half(columns_67) as u64,
        low_half(_mm_unpackhi_epi64(columns_67, columns_67)) as u64,
    ]
}

/// [`transpose`] with shifts and masks, for any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn transpose_portable(mut w: [u64; 8]) -> [u64; 8] {
    // Swap 4 x 4 quadrants, then 2 x 2, then single bytes: three passes of four exchanges.
    const M4: u64 = 0x0000_0000_ffff_ffff;
    const M2: u64 = 0x0000_ffff_0000_ffff;
    const M1: u64 = 0x00ff_00ff_00ff_00ff;
    for r in 0..4 {
        let t = ((w[r] >> 32) ^ w[r + 4]) & M4;
        w[r] ^= t << 32;
        w[r + 4] ^= t;
    }
    for r in [0, 1, 4, 5] {
        let t = ((w[r] >> 16) ^ w[r + 2]) & M2;
        w[r] ^= t << 16;
        w[r + 2] ^= t;
    }
    for r in [0, 2, 4, 6] {
        let t = ((w[r] >> 8) ^ w[r + 1]) & M1;
        w[r] ^= t << 8;
        w[r + 1] ^= t;
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_moves_each_byte() {
        let mut words = [0u64; 8];
        for (r, word) in words.iter_mut().enumerate() {
            *word = u64::from_le_bytes(std::array::from_fn(|c| (r * 8 + c) as u8));
        }
        for transposed in [transpose(words), transpose_portable(words)] {
            for (c, word) in transposed.into_iter().enumerate() {
                assert_eq!(word.to_le_bytes(), std::array::from_fn(|r| (r * 8 + c) as u8));
            }
        }
    }
}
