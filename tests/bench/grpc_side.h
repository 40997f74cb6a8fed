#ifndef GRPC_SIDE_H
#define GRPC_SIDE_H

// What the gRPC peers share. Tuned as its performance guide says and as six
// settings measured best: optimised for throughput, a subchannel of its own for
// each channel, no limit of streams that matters. Deadlines are checked, as in
// ours (no minimal stack).

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "peer.grpc.pb.h"
#include "side.h"

namespace grpc_side
{

using bench::peer::Peer;
using bench::peer::Reply;
using bench::peer::Request;
using Stubs = std::vector<std::unique_ptr<Peer::Stub>>;

// A builder that listens at "tcp://..." or "ipc://..."; ready() is what
// side_ready is to say when its server runs.
struct Listening {
    explicit Listening(const char *address);

    std::string ready() const;

    grpc::ServerBuilder builder;

  private:
    std::string address;
    int port = 0;
};

Stubs dial(const side_options &options);

// What every call carries.
void prepare(grpc::ClientContext &context);

// Ends the process unless the call is welcome; unless the answer is the body.
void check(const std::multimap<grpc::string_ref, grpc::string_ref> &metadata);
void check(const grpc::Status &status, const Reply &reply,
           const side_options &options);

} // namespace grpc_side

#endif
