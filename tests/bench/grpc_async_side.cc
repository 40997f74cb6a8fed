// gRPC's completion queues, on both sides. How: "1" or "2" queues a side, a
// thread each.
#include "grpc_side.h"

#include <cstdlib>
#include <thread>

using namespace grpc_side;

namespace
{

constexpr unsigned waiting_calls = 512; // requested ahead at the server

Peer::AsyncService service;

// One request after another on a queue.
class Servant
{
  public:
    explicit Servant(grpc::ServerCompletionQueue *queue) : queue_(queue)
    {
        await();
    }

    void go_on(bool ok)
    {
        if (answered_ || !ok)
            await();
        else
            answer();
    }

  private:
    void await()
    {
        context_ = std::make_unique<grpc::ServerContext>();
        writer_ = std::make_unique<grpc::ServerAsyncResponseWriter<Reply>>(
            context_.get());
        answered_ = false;
        service.RequestEcho(context_.get(), &request_, writer_.get(), queue_,
                            queue_, this);
    }

    void answer()
    {
        check(context_->client_metadata());
        reply_.set_body(std::move(*request_.mutable_body()));
        answered_ = true;
        writer_->Finish(reply_, grpc::Status::OK, this);
    }

    grpc::ServerCompletionQueue *queue_;
    std::unique_ptr<grpc::ServerContext> context_;
    std::unique_ptr<grpc::ServerAsyncResponseWriter<Reply>> writer_;
    Request request_;
    Reply reply_;
    bool answered_ = false;
};

template <class Tag>
void
turn(grpc::CompletionQueue *queue)
{
    void *tag;
    bool ok;

    while (queue->Next(&tag, &ok))
        static_cast<Tag *>(tag)->go_on(ok);
}

unsigned
queues_of(const char *how)
{
    return *how ? unsigned(std::atoi(how)) : 1;
}

void
serve(const char *address, const char *how)
{
    Listening listening(address);
    unsigned n = queues_of(how);
    std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
    std::vector<std::thread> threads;

    listening.builder.RegisterService(&service);
    for (unsigned i = 0; i < n; i++)
        queues.push_back(listening.builder.AddCompletionQueue());
    auto server = listening.builder.BuildAndStart();
    if (!server)
        side_die(address, "not started");
    for (auto &queue : queues) {
        for (unsigned i = 0; i < waiting_calls / n; i++)
            new Servant(queue.get());
        threads.emplace_back(turn<Servant>, queue.get());
    }
    side_ready(listening.ready().c_str());
    for (auto &thread : threads)
        thread.join();
}

// One call after another.
class Place
{
  public:
    Place(Peer::Stub *stub, grpc::CompletionQueue *queue,
          const side_options &options, tally *counts)
        : stub_(stub), queue_(queue), options_(options), counts_(counts)
    {
        request_.set_body(options.body, options.bytes);
    }

    void start()
    {
        since_ns_ = now_ns();
        reader_.reset();
        context_ = std::make_unique<grpc::ClientContext>();
        prepare(*context_);
        reader_ = stub_->AsyncEcho(context_.get(), request_, queue_);
        reader_->Finish(&reply_, &status_, this);
    }

    void go_on(bool)
    {
        check(status_, reply_, options_);
        if (tally_add(counts_, since_ns_))
            start();
    }

  private:
    Peer::Stub *stub_;
    grpc::CompletionQueue *queue_;
    side_options options_;
    tally *counts_;
    int64_t since_ns_ = 0;
    std::unique_ptr<grpc::ClientContext> context_;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader_;
    Request request_;
    Reply reply_;
    grpc::Status status_;
};

// Places, queues and threads live as long as the process.
void
call(const side_options *options, tally *counts)
{
    static Stubs stubs = dial(*options);
    static std::vector<grpc::CompletionQueue> queues(queues_of(options->how));

    for (unsigned i = 0; i < options->in_flight; i++)
        (new Place(stubs[i % stubs.size()].get(),
                   &queues[i / stubs.size() % queues.size()], *options, counts))
            ->start();
    for (auto &queue : queues)
        std::thread(turn<Place>, &queue).detach();
}

} // namespace

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
