#ifndef TCP_PROXY_H
#define TCP_PROXY_H

/* A proxy on a loopback port in front of another one, on a thread of its own:
 * cuts, holds back and counts. Functions are for any thread; what one says is
 * so when it returns. */
struct tcp_proxy;

enum tcp_proxy_cut {
    TCP_PROXY_CUT_NEVER,
    TCP_PROXY_CUT_BEFORE, /* the bytes are not passed on */
    TCP_PROXY_CUT_AFTER,  /* they are passed on, and both ends closed at once:
                           * the answer is lost */
    TCP_PROXY_CUT_ANSWER, /* they are passed on with what is behind them, and
                           * both ends closed when an answer comes */
};

struct tcp_proxy *tcp_proxy_start(unsigned target_port);
void tcp_proxy_free(struct tcp_proxy *proxy); /* NULL is fine */
unsigned tcp_proxy_port(const struct tcp_proxy *proxy);

/* Cut the next `times` connections on which the client sends these bytes, in
 * one piece. The needle is copied; at most 63 bytes. */
void tcp_proxy_cut(struct tcp_proxy *proxy, enum tcp_proxy_cut cut,
                   const char *needle, unsigned times);

/* Connections cut so far. */
unsigned tcp_proxy_cuts(struct tcp_proxy *proxy);

/* Round trips so far: how often a client sent after the server had. */
unsigned tcp_proxy_trips(struct tcp_proxy *proxy);

/* Close all connections now. */
void tcp_proxy_break(struct tcp_proxy *proxy);

/* A black hole: accept, pass nothing on in either direction, until told. */
void tcp_proxy_hold(struct tcp_proxy *proxy, int hold);

/* Refuse: close each new connection at once. */
void tcp_proxy_refuse(struct tcp_proxy *proxy, int refuse);

#endif
