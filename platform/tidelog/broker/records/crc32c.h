/* CRC-32C (Castagnoli), by the processor's instruction where it has one. Needs crc32c_begin() once.

   One instruction waits for the one before it, so that three runs of bytes go side by side; what came before a run is
   shifted over it by tables, as the sum is linear. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_POLYNOMIAL 0x82f63b78u
#define CRC32C_LONG 4096
#define CRC32C_SHORT 256

static uint32_t crc32c_bytes[8][256];
static uint32_t crc32c_over_long[4][256], crc32c_over_short[4][256];
static int crc32c_has_instruction;

static inline uint64_t crc32c_load(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* How a sum changes by `size` bytes of zeros: `over[k][n]` is the change of n in its byte k. */
static void crc32c_fill(uint32_t over[4][256], size_t size) {
    for (int k = 0; k < 4; k++) {
        over[k][0] = 0;
        for (uint32_t bit = 1; bit < 256; bit <<= 1) {
            uint32_t sum = bit << 8 * k;
            for (size_t n = 0; n < size; n++) sum = sum >> 8 ^ crc32c_bytes[0][sum & 255];
            for (uint32_t n = 0; n < bit; n++) over[k][bit + n] = over[k][n] ^ sum;
        }
    }
}

static inline uint32_t crc32c_shifted(uint32_t over[4][256], uint32_t sum) {
    return over[0][sum & 255] ^ over[1][sum >> 8 & 255] ^ over[2][sum >> 16 & 255] ^ over[3][sum >> 24];
}

static uint32_t crc32c_by_tables(uint32_t sum, const uint8_t *at, size_t size) {
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low = sum ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        sum = crc32c_bytes[7][low & 255] ^ crc32c_bytes[6][low >> 8 & 255] ^ crc32c_bytes[5][low >> 16 & 255] ^
              crc32c_bytes[4][low >> 24] ^ crc32c_bytes[3][at[4]] ^ crc32c_bytes[2][at[5]] ^ crc32c_bytes[1][at[6]] ^
              crc32c_bytes[0][at[7]];
    }
    for (; size; at++, size--) sum = sum >> 8 ^ crc32c_bytes[0][(sum ^ *at) & 255];
    return sum;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define CRC32C_INSTRUCTION __attribute__((target("sse4.2")))
#define CRC32C_WORD(sum, word) _mm_crc32_u64(sum, word)
#define CRC32C_BYTE(sum, byte) _mm_crc32_u8((uint32_t)(sum), byte)
#define CRC32C_IS_THERE __builtin_cpu_supports("sse4.2")
#elif defined(__ARM_FEATURE_CRC32) && defined(__LITTLE_ENDIAN__) || \
    defined(__ARM_FEATURE_CRC32) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_acle.h>
#define CRC32C_INSTRUCTION
#define CRC32C_WORD(sum, word) __crc32cd((uint32_t)(sum), word)
#define CRC32C_BYTE(sum, byte) __crc32cb((uint32_t)(sum), byte)
#define CRC32C_IS_THERE 1
#endif

#ifdef CRC32C_INSTRUCTION
#define CRC32C_THREE_RUNS(run, over)                                    \
    for (; size >= 3 * run; at += 3 * run, size -= 3 * run) {           \
        uint64_t second = 0, third = 0;                                 \
        for (size_t n = 0; n < run; n += 8) {                           \
            sum = CRC32C_WORD(sum, crc32c_load(at + n));                \
            second = CRC32C_WORD(second, crc32c_load(at + run + n));    \
            third = CRC32C_WORD(third, crc32c_load(at + 2 * run + n));  \
        }                                                               \
        sum = crc32c_shifted(over, (uint32_t)sum) ^ (uint32_t)second;   \
        sum = crc32c_shifted(over, (uint32_t)sum) ^ (uint32_t)third;    \
    }

CRC32C_INSTRUCTION static uint32_t crc32c_by_instruction(uint32_t before, const uint8_t *at, size_t size) {
    uint64_t sum = before;
    CRC32C_THREE_RUNS(CRC32C_LONG, crc32c_over_long)
    CRC32C_THREE_RUNS(CRC32C_SHORT, crc32c_over_short)
    for (; size >= 8; at += 8, size -= 8) sum = CRC32C_WORD(sum, crc32c_load(at));
    for (; size; at++, size--) sum = CRC32C_BYTE(sum, *at);
    return (uint32_t)sum;
}
#endif

/* Fill the tables. */
static void crc32c_begin(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t sum = n;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_bytes[0][n] = sum;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t n = 0; n < 256; n++)
            crc32c_bytes[k][n] = crc32c_bytes[k - 1][n] >> 8 ^ crc32c_bytes[0][crc32c_bytes[k - 1][n] & 255];
    crc32c_fill(crc32c_over_long, CRC32C_LONG);
    crc32c_fill(crc32c_over_short, CRC32C_SHORT);
#ifdef CRC32C_INSTRUCTION
    crc32c_has_instruction = CRC32C_IS_THERE;
#endif
}

/* The checksum of bytes. */
static uint32_t crc32c_of(const uint8_t *at, size_t size, int by_tables) {
#ifdef CRC32C_INSTRUCTION
    if (crc32c_has_instruction && !by_tables) return ~crc32c_by_instruction(0xffffffffu, at, size);
#endif
    (void)by_tables;
    return ~crc32c_by_tables(0xffffffffu, at, size);
}
