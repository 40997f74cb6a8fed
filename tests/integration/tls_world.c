#include "tls_world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AWAIT_S 30

static void
reloaded(void *with, const struct idem_error *err)
{
    struct tls_world *tls = with;

    pthread_mutex_lock(&tls->lock);
    if (err) {
        tls->bad++;
        tls->trouble = *err;
    } else {
        tls->good++;
    }
    pthread_cond_broadcast(&tls->change);
    pthread_mutex_unlock(&tls->lock);
}

void
tls_world_issue_server(struct tls_world *tls,
                       const struct certificate_order *order)
{
    authority_issue(tls->authority, order, tls->server_path,
                    tls->server_key_path);
}

void
tls_world_issue_client(struct tls_world *tls,
                       const struct certificate_order *order)
{
    authority_issue(tls->authority, order, tls->client_path,
                    tls->client_key_path);
}

static void
name_files(struct tls_world *tls)
{
    struct tempdir *dir = &tls->dir;

    tempdir_file(dir, "authority.pem", tls->authority_path,
                 sizeof tls->authority_path);
    tempdir_file(dir, "server.pem", tls->server_path, sizeof tls->server_path);
    tempdir_file(dir, "server.key", tls->server_key_path,
                 sizeof tls->server_key_path);
    tempdir_file(dir, "client.pem", tls->client_path, sizeof tls->client_path);
    tempdir_file(dir, "client.key", tls->client_key_path,
                 sizeof tls->client_key_path);
}

void
tls_world_open(struct tls_world *tls)
{
    memset(tls, 0, sizeof *tls);
    tempdir_open(&tls->dir);
    pthread_mutex_init(&tls->lock, NULL);
    pthread_cond_init(&tls->change, NULL);
    name_files(tls);
    tls->authority = authority_new("the bank");
    authority_write(tls->authority, tls->authority_path);
    tls_world_issue_server(
        tls, &(struct certificate_order){
                 .names = "IP:127.0.0.1,DNS:pay.test,URI:" TLS_SERVER});
    tls_world_issue_client(
        tls, &(struct certificate_order){.names = "URI:" TLS_CLIENT});
    tls->server = (struct idem_tls_options){
        .certificate_file = tls->server_path,
        .key_file = tls->server_key_path,
        .authority_file = tls->authority_path,
        .reloaded = reloaded,
        .with = tls,
    };
    tls->client = (struct idem_tls_options){
        .certificate_file = tls->client_path,
        .key_file = tls->client_key_path,
        .authority_file = tls->authority_path,
    };
}

void
tls_world_close(struct tls_world *tls)
{
    authority_free(tls->authority);
    pthread_cond_destroy(&tls->change);
    pthread_mutex_destroy(&tls->lock);
    tempdir_close(&tls->dir);
}

void
tls_world_await_reloads(struct tls_world *tls, unsigned good, unsigned bad)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += AWAIT_S;
    pthread_mutex_lock(&tls->lock);
    while ((tls->good < good || tls->bad < bad) && rc == 0)
        rc = pthread_cond_timedwait(&tls->change, &tls->lock, &end);
    pthread_mutex_unlock(&tls->lock);
    assert_int_equal(rc, 0);
}

struct echo_options
tls_world_echo(const struct tls_world *tls,
               const struct idem_tls_options *server,
               const struct idem_tls_options *client)
{
    (void)tls;
    return (struct echo_options){
        .transport = ECHO_TLS,
        .server.tls = server,
        .channel.tls = client,
    };
}

int
tls_set_up(void **state)
{
    struct tls_world *tls = calloc(1, sizeof *tls);

    assert_non_null(tls);
    tls_world_open(tls);
    *state = tls;
    return 0;
}

int
tls_tear_down(void **state)
{
    tls_world_close(*state);
    free(*state);
    return 0;
}
