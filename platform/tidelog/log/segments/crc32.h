/* CRC-32 as zlib, gzip and Parquet have it, by carry-less products where the processor multiplies so. Needs
   crc32_begin() once.

   A sum is the rest of a division of polynomials. A product with x^n mod P brings 64 bits n bits ahead, so that four
   runs of 16 bytes go side by side; what is left of them, 16 bytes, is divided by tables. The numbers are x^n mod P
   with the bits of bytes as they come, for n of two words before 64 and 16 bytes. Source: V. Gopal and others, "Fast
   CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32_POLYNOMIAL 0xedb88320u

static uint32_t crc32_bytes[8][256];
static int crc32_has_instruction;

static uint32_t crc32_by_tables(uint32_t sum, const uint8_t *at, size_t size) {
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low = sum ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        sum = crc32_bytes[7][low & 255] ^ crc32_bytes[6][low >> 8 & 255] ^ crc32_bytes[5][low >> 16 & 255] ^
              crc32_bytes[4][low >> 24] ^ crc32_bytes[3][at[4]] ^ crc32_bytes[2][at[5]] ^ crc32_bytes[1][at[6]] ^
              crc32_bytes[0][at[7]];
    }
    for (; size; at++, size--) sum = sum >> 8 ^ crc32_bytes[0][(sum ^ *at) & 255];
    return sum;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CRC32_INSTRUCTION __attribute__((target("sse4.1,pclmul")))
#define CRC32_IS_THERE (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))

CRC32_INSTRUCTION static inline __m128i crc32_ahead(__m128i run, __m128i by, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(run, by, 0x00), high = _mm_clmulepi64_si128(run, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

#define CRC32_LOAD(at) _mm_loadu_si128((const __m128i *)(at))

CRC32_INSTRUCTION static uint32_t crc32_by_instruction(uint32_t sum, const uint8_t *at, size_t size) {
    if (size < 64) return crc32_by_tables(sum, at, size);
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    __m128i first = _mm_xor_si128(CRC32_LOAD(at), _mm_cvtsi32_si128((int)sum)), second = CRC32_LOAD(at + 16);
    __m128i third = CRC32_LOAD(at + 32), fourth = CRC32_LOAD(at + 48);
    for (at += 64, size -= 64; size >= 64; at += 64, size -= 64) {
        first = crc32_ahead(first, by_64, CRC32_LOAD(at));
        second = crc32_ahead(second, by_64, CRC32_LOAD(at + 16));
        third = crc32_ahead(third, by_64, CRC32_LOAD(at + 32));
        fourth = crc32_ahead(fourth, by_64, CRC32_LOAD(at + 48));
    }
    first = crc32_ahead(first, by_16, second);
    first = crc32_ahead(first, by_16, third);
    first = crc32_ahead(first, by_16, fourth);
    for (; size >= 16; at += 16, size -= 16) first = crc32_ahead(first, by_16, CRC32_LOAD(at));
    uint8_t left[16];
    _mm_storeu_si128((__m128i *)left, first);
    return crc32_by_tables(crc32_by_tables(0, left, 16), at, size);
}
#endif

/* Fill the tables. */
static void crc32_begin(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t sum = n;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? CRC32_POLYNOMIAL : 0);
        crc32_bytes[0][n] = sum;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t n = 0; n < 256; n++)
            crc32_bytes[k][n] = crc32_bytes[k - 1][n] >> 8 ^ crc32_bytes[0][crc32_bytes[k - 1][n] & 255];
#ifdef CRC32_INSTRUCTION
    crc32_has_instruction = CRC32_IS_THERE;
#endif
}

/* The checksum of bytes. */
static uint32_t crc32_of(const uint8_t *at, size_t size, int by_tables) {
#ifdef CRC32_INSTRUCTION
    if (crc32_has_instruction && !by_tables) return ~crc32_by_instruction(0xffffffffu, at, size);
#endif
    (void)by_tables;
    return ~crc32_by_tables(0xffffffffu, at, size);
}
