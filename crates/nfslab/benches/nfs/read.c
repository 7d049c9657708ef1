/* libnfs reading blocks at random places: CONNECTIONS threads with a connection each, DEPTH requests in flight on each.
 *
 * read SERVER EXPORT PATH NFS_PORT MOUNT_PORT VERSION CONNECTIONS DEPTH SECONDS FILE_BYTES
 *
 * Prints reads per second, and microseconds of the threads' processor time for each. A request that fails or is short ends it with status 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <nfsc/libnfs.h>

enum { BLOCK = 8192 };

struct terms {
    const char *server, *export, *path;
    int version, nfs_port, mount_port, depth;
    double seconds;
    uint64_t blocks;
};

struct worker {
    const struct terms *terms;
    pthread_t thread;
    struct nfs_context *nfs;
    struct nfsfh *file;
    uint64_t random, count;
    int in_flight, ending;
    double cpu;
};

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(struct worker *w, const char *what) {
    fprintf(stderr, "%s: %s\n", what, nfs_get_error(w->nfs));
    exit(1);
}

/* splitmix64 */
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void ask(struct worker *w);

static void answered(int status, struct nfs_context *nfs, void *data, void *private) {
    struct worker *w = private;
    (void)nfs;
    (void)data;
    if (status != BLOCK)
        fail(w, "read");
    w->in_flight--;
    w->count++;
    if (!w->ending)
        ask(w);
}

static void ask(struct worker *w) {
    uint64_t at = next(&w->random) % w->terms->blocks * BLOCK;
    if (nfs_pread_async(w->nfs, w->file, at, BLOCK, answered, w) != 0)
        fail(w, "ask");
    w->in_flight++;
}

static void serve(struct worker *w) {
    struct pollfd ready = { .fd = nfs_get_fd(w->nfs), .events = nfs_which_events(w->nfs) };
    if (poll(&ready, 1, 1000) < 0 && errno != EINTR)
        fail(w, "poll");
    if (nfs_service(w->nfs, ready.revents) < 0)
        fail(w, "serve");
}

static void *work(void *argument) {
    struct worker *w = argument;
    double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID), end = seconds_of(CLOCK_MONOTONIC) + w->terms->seconds;
    for (int slot = 0; slot < w->terms->depth; slot++)
        ask(w);
    while (seconds_of(CLOCK_MONOTONIC) < end)
        serve(w);
    w->cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    uint64_t counted = w->count;
    w->ending = 1;
    while (w->in_flight > 0)
        serve(w);
    w->count = counted;
    return NULL;
}

int main(int count, char **words) {
    if (count != 11) {
        fprintf(stderr, "read SERVER EXPORT PATH NFS_PORT MOUNT_PORT VERSION CONNECTIONS DEPTH SECONDS FILE_BYTES\n");
        return 2;
    }
    struct terms terms = {
        .server = words[1], .export = words[2], .path = words[3], .nfs_port = atoi(words[4]), .mount_port = atoi(words[5]),
        .version = atoi(words[6]), .depth = atoi(words[8]), .seconds = atof(words[9]),
        .blocks = strtoull(words[10], NULL, 10) / BLOCK,
    };
    int connections = atoi(words[7]);
    struct worker *workers = calloc(connections, sizeof *workers);
    for (int n = 0; n < connections; n++) {
        struct worker *w = &workers[n];
        char url[512];
        w->terms = &terms;
        w->random = 17 + n;
        w->nfs = nfs_init_context();
        snprintf(url, sizeof url, "nfs://%s%s?version=%d&nfsport=%d&mountport=%d&uid=0&gid=0", terms.server, terms.export,
                 terms.version, terms.nfs_port, terms.mount_port);
        /* By default all contexts of a process are one client of version 4, and end each other's state. */
        char name[64];
        snprintf(name, sizeof name, "libnfs %d.%d", getpid(), n);
        nfs4_set_client_name(w->nfs, name);
        struct nfs_url *parsed = nfs_parse_url_dir(w->nfs, url);
        if (!parsed || nfs_mount(w->nfs, terms.server, terms.export) != 0)
            fail(w, "mount");
        if (nfs_open(w->nfs, terms.path, O_RDONLY, &w->file) != 0)
            fail(w, "open");
        nfs_destroy_url(parsed);
    }
    double cpu = 0;
    for (int n = 0; n < connections; n++)
        pthread_create(&workers[n].thread, NULL, work, &workers[n]);
    uint64_t reads = 0;
    for (int n = 0; n < connections; n++) {
        pthread_join(workers[n].thread, NULL);
        reads += workers[n].count;
        cpu += workers[n].cpu;
    }
    printf("%.1f %.4f\n", reads / terms.seconds, cpu * 1e6 / reads);
    return 0;
}
