#include "support.h"

#include "slab.h"

#include <pthread.h>
#include <string.h>

/* Blocks that go from thread to thread. */

enum { BLOCKS = 1000, ROUNDS = 50, THREADS = 4 };

static const size_t sizes[] = {100, SLAB_SIZE_MIN + 1, 4096, 4097,
                               SLAB_SIZE_MAX};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void
blocks_that_are_taken_are_apart(void **state)
{
    static unsigned char *blocks[BLOCKS];

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            size_t size = sizes[i % SIZES];

            blocks[i] = slab_take(size);
            assert_non_null(blocks[i]);
            memset(blocks[i], (int)(i & 0xff), size);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            size_t size = sizes[i % SIZES];

            assert_int_equal(blocks[i][0], i & 0xff);
            assert_int_equal(blocks[i][size - 1], i & 0xff);
            slab_give(blocks[i], size);
        }
    }
}

static void
a_block_over_the_size_is_there_too(void **state)
{
    const size_t size = 10 * SLAB_SIZE_MAX;
    unsigned char *block = slab_take(size);

    (void)state;
    assert_non_null(block);
    memset(block, 1, size);
    slab_give(block, size);
    slab_give(NULL, 100);
}

/* One thread takes, the next gives back. */
static struct {
    pthread_mutex_t lock;
    unsigned *blocks[BLOCKS];
    unsigned n;
} table = {PTHREAD_MUTEX_INITIALIZER, {NULL}, 0};

static void *
take_and_give(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS * BLOCKS; i++) {
        unsigned *block = NULL;

        if (i % 3 != 0) {
            block = slab_take(100);
            assert_non_null(block);
            block[0] = i;
            block[1] = ~i;
        }
        pthread_mutex_lock(&table.lock);
        if (block && table.n < BLOCKS) {
            table.blocks[table.n++] = block;
            block = NULL;
        } else if (!block && table.n > 0) {
            block = table.blocks[--table.n];
        }
        pthread_mutex_unlock(&table.lock);
        if (block)
            assert_int_equal(block[0], ~block[1]);
        slab_give(block, 100);
    }
    return NULL;
}

static void
blocks_go_from_thread_to_thread(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_and_give, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (table.n > 0)
        slab_give(table.blocks[--table.n], 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_are_taken_are_apart),
        cmocka_unit_test(a_block_over_the_size_is_there_too),
        cmocka_unit_test(blocks_go_from_thread_to_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
