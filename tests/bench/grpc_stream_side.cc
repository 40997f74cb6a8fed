// gRPC's callback reactors for streams, on both sides. How: "talk" goes to and
// fro with one message under way a stream, "watch" is a stream of the server's.
#include "grpc_side.h"

#include <atomic>
#include <cstring>

using namespace grpc_side;

namespace
{

class Talking : public grpc::ServerBidiReactor<Request, Reply>
{
  public:
    explicit Talking(grpc::CallbackServerContext *context)
    {
        check(context->client_metadata());
        StartRead(&request_);
    }

    void OnReadDone(bool ok) override
    {
        if (!ok) {
            Finish(grpc::Status::OK);
            return;
        }
        reply_.set_body(request_.body());
        StartWrite(&reply_);
    }

    void OnWriteDone(bool ok) override
    {
        if (ok)
            StartRead(&request_);
        else
            Finish(grpc::Status::OK);
    }

    void OnDone() override
    {
        delete this;
    }

  private:
    Request request_;
    Reply reply_;
};

class Watched : public grpc::ServerWriteReactor<Reply>
{
  public:
    Watched(grpc::CallbackServerContext *context, const Request *request)
    {
        check(context->client_metadata());
        reply_.set_body(request->body());
        StartWrite(&reply_);
    }

    void OnWriteDone(bool ok) override
    {
        if (ok)
            StartWrite(&reply_);
        else
            Finish(grpc::Status::OK);
    }

    void OnDone() override
    {
        delete this;
    }

  private:
    Reply reply_;
};

class Service : public Peer::CallbackService
{
    grpc::ServerBidiReactor<Request, Reply> *
    Talk(grpc::CallbackServerContext *context) override
    {
        return new Talking(context);
    }

    grpc::ServerWriteReactor<Reply> *Watch(grpc::CallbackServerContext *context,
                                           const Request *request) override
    {
        return new Watched(context, request);
    }
};

void
serve(const char *address, const char *)
{
    Service service;
    Listening listening(address);

    listening.builder.RegisterService(&service);
    auto server = listening.builder.BuildAndStart();
    if (!server)
        side_die(address, "not started");
    side_ready(listening.ready().c_str());
    server->Wait();
}

class Talker : public grpc::ClientBidiReactor<Request, Reply>
{
  public:
    Talker(Peer::Stub *stub, const side_options &options, tally *counts)
        : options_(options), counts_(counts)
    {
        prepare(context_);
        context_.set_deadline(std::chrono::system_clock::now() +
                              std::chrono::minutes(1));
        request_.set_body(options.body, options.bytes);
        stub->async()->Talk(&context_, this);
        speak();
        StartCall();
    }

    void OnReadDone(bool ok) override
    {
        if (!ok)
            side_die("stream", "ended");
        check(grpc::Status::OK, reply_, options_);
        half_done();
    }

    void OnWriteDone(bool ok) override
    {
        if (!ok)
            side_die("stream", "ended");
        half_done();
    }

  private:
    void speak()
    {
        halves_ = 2;
        since_ns_ = now_ns();
        StartRead(&reply_);
        StartWrite(&request_);
    }

    // The answer may be here before its question is told to have left.
    void half_done()
    {
        if (--halves_ == 0 && tally_add(counts_, since_ns_))
            speak();
    }

    side_options options_;
    tally *counts_;
    int64_t since_ns_ = 0;
    std::atomic<int> halves_{0};
    grpc::ClientContext context_;
    Request request_;
    Reply reply_;
};

class Watcher : public grpc::ClientReadReactor<Reply>
{
  public:
    Watcher(Peer::Stub *stub, const side_options &options, tally *counts)
        : options_(options), counts_(counts)
    {
        prepare(context_);
        context_.set_deadline(std::chrono::system_clock::now() +
                              std::chrono::minutes(1));
        request_.set_body(options.body, options.bytes);
        stub->async()->Watch(&context_, &request_, this);
        since_ns_ = now_ns();
        StartRead(&reply_);
        StartCall();
    }

    void OnReadDone(bool ok) override
    {
        if (!ok)
            side_die("stream", "ended");
        check(grpc::Status::OK, reply_, options_);
        if (!tally_add(counts_, since_ns_)) {
            context_.TryCancel();
            return;
        }
        since_ns_ = now_ns();
        StartRead(&reply_);
    }

  private:
    side_options options_;
    tally *counts_;
    int64_t since_ns_ = 0;
    grpc::ClientContext context_;
    Request request_;
    Reply reply_;
};

// Streams live as long as the process.
void
call(const side_options *options, tally *counts)
{
    static Stubs stubs = dial(*options);

    for (unsigned i = 0; i < options->in_flight; i++) {
        Peer::Stub *stub = stubs[i % stubs.size()].get();

        if (std::strcmp(options->how, "talk") == 0)
            new Talker(stub, *options, counts);
        else
            new Watcher(stub, *options, counts);
    }
}

} // namespace

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
