// Connections over Boost.Asio, requests read by Boost.Beast's parser, replies written as text.
//
// Each connection has a strand: what it does never runs twice at a time. It goes round:
//
//   at rest -> reading a request -> answering -> at rest
//
// Reading. Between requests a connection may rest for `idle_seconds`; once the first byte is there
// the whole request has to come within `read_seconds`, else it is answered with 408. A body that
// says it is too large is refused before it is read.
//
// Answering. A whole reply is one text. A stream is pulled from the route whenever the last piece
// has left for the kernel, in chunks; nothing is kept for a client that does not read, and one that
// takes nothing for `write_seconds` is cut off.
//
// Clients that go. While a request is answered nobody reads, so the socket is watched: readable
// with nothing in it means the other side has closed. Bytes are a next request sent early; it
// waits, and from then on only writing tells whether the client is there.
#include "src/server/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "src/server/api_error.h"

namespace pawl::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using Code = boost::system::error_code;
using Socket = tcp::socket::rebind_executor<asio::strand<asio::io_context::executor_type>>::other;

namespace {

constexpr size_t kMaxIdBytes = 128;
// Pieces of a stream are joined up to here before they are sent.
constexpr size_t kPieceBytes = 64 << 10;

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

std::string NewRequestId() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  static constexpr char kHex[] = "0123456789abcdef";
  std::string id = "req_";
  for (uint64_t bits = random(), i = 0; i < 16; ++i, bits >>= 4) id += kHex[bits & 15];
  return id;
}

// An id from the client is written to logs and headers: only what is harmless there.
bool GoodId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view StatusText(int status) {
  const auto text = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

// ---- One connection ----

namespace {

class Connection;

struct Shared {
  HttpOptions options;
  HttpServer::Handler handler;
  std::atomic<bool> draining{false};
  std::atomic<int> connections{0};
  std::atomic<int> exchanges{0};
  std::mutex mutex;
  std::set<Connection*> open;  // under mutex
};

class HttpExchange;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared> shared, Socket socket)
      : shared_(std::move(shared)), socket_(std::move(socket)), timer_(socket_.get_executor()) {
    ++shared_->connections;
    const std::lock_guard lock(shared_->mutex);
    shared_->open.insert(this);
  }
  ~Connection() {
    const std::lock_guard lock(shared_->mutex);
    shared_->open.erase(this);
    --shared_->connections;
  }

  auto executor() { return socket_.get_executor(); }
  void Start() {
    Code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    Rest();
  }
  // From another thread: closes the connection when it is at rest, or in any case.
  void Leave(bool at_once) {
    asio::post(executor(), [self = shared_from_this(), at_once] {
      if (at_once || self->resting_) self->Close();
    });
  }

 private:
  friend class HttpExchange;

  // ---- Reading ----

  void Rest() {
    if (shared_->draining) return Close();
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_->options.max_header_bytes));
    parser_->body_limit(shared_->options.max_body_bytes);
    keep_alive_ = false;
    if (buffer_.size() > 0) return Read();
    resting_ = true;
    Deadline(shared_->options.idle_seconds, [this] { Close(); });
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](Code error) {
      self->resting_ = false;
      if (error || !self->socket_.is_open()) return self->Close();
      self->Read();
    });
  }

  void Read() {
    late_ = false;
    Deadline(shared_->options.read_seconds, [this] {
      late_ = true;
      Code ignored;
      socket_.cancel(ignored);
    });
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = shared_from_this()](Code error, size_t) {
                              if (error) return self->BadRequest(error);
                              self->ReadBody();
                            });
  }

  void ReadBody() {
    const auto expect = parser_->get()[http::field::expect];
    if (!expect.empty() && !parser_->is_done()) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      asio::async_write(socket_, asio::buffer(kContinue),
                        [self = shared_from_this()](Code error, size_t) {
                          if (error) return self->BadRequest(error);
                          self->ReadRest();
                        });
    } else {
      ReadRest();
    }
  }

  void ReadRest() {
    // A long body comes in few pieces: without room each takes half a kilobyte.
    constexpr size_t kPiece = 64 << 10;
    if (!parser_->is_done()) buffer_.reserve(kPiece);
    http::async_read(socket_, buffer_, *parser_, [self = shared_from_this()](Code error, size_t) {
      if (error) return self->BadRequest(error);
      self->buffer_.shrink_to_fit();
      self->Handle();
    });
  }

  void BadRequest(Code error) {
    timer_.cancel();
    ApiError answer;
    if (late_) {
      answer = {.status = 408, .message = "the request did not arrive in time"};
    } else if (error == http::error::body_limit) {
      answer = {.status = 413,
                .message = "the body is larger than " +
                           std::to_string(shared_->options.max_body_bytes) + " bytes"};
    } else if (error == http::error::header_limit) {
      answer = {.status = 431, .message = "the headers are too large"};
    } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
               error != http::error::end_of_stream && error != http::error::partial_message) {
      answer = {.status = 400, .message = "not HTTP: " + error.message()};
    } else {
      return Close();
    }
    HttpReply reply = answer.ToReply();
    reply.headers.emplace_back("connection", "close");
    id_ = NewRequestId();
    head_only_ = false;
    ++shared_->exchanges;
    answering_ = true;
    lingering_ = true;
    StartReply(std::move(reply), nullptr);
  }

  void Handle();

  // ---- Watching for clients that go ----

  void Watch() {
    if (watching_ || !answering_) return;
    watching_ = true;
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](Code error) {
      self->watching_ = false;
      if (!self->answering_) return;
      if (error || !self->socket_.is_open()) return self->Gone();
      char byte;
      const ssize_t n = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n > 0) return;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return self->Watch();
      }
      self->Gone();
    });
  }

  void Gone() {
    pull_ = nullptr;
    const bool told = !std::exchange(answering_, false);
    Close();
    if (told) return;
    --shared_->exchanges;
    TellGone();
  }
  void TellGone();

  // ---- Answering ----

  void StartReply(HttpReply reply, Exchange::Pull pull) {
    if (!answering_ || started_) return;
    started_ = true;
    const bool stream = pull != nullptr;
    chunked_ = stream && http11_;
    if (shared_->draining || (stream && !http11_)) keep_alive_ = false;
    out_ = "HTTP/1.1 " + std::to_string(reply.status) + " ";
    out_ += StatusText(reply.status);
    out_ += "\r\ncontent-type: " + reply.content_type + "\r\nx-request-id: " + id_ + "\r\n";
    for (const auto& [name, value] : reply.headers) {
      if (name != "connection") out_ += name + ": " + value + "\r\n";
    }
    if (const std::string& origin = shared_->options.cors_origin; !origin.empty()) {
      out_ += "access-control-allow-origin: " + origin + "\r\n";
      out_ += "access-control-expose-headers: x-request-id, retry-after\r\n";
      if (reply.status == 204) {  // what an OPTIONS asks
        out_ += "access-control-allow-methods: GET, POST, OPTIONS\r\n";
        out_ += "access-control-allow-headers: *, authorization\r\naccess-control-max-age: 600\r\n";
      }
    }
    if (!keep_alive_) out_ += "connection: close\r\n";
    if (stream) {
      out_ += "cache-control: no-cache\r\nx-accel-buffering: no\r\n";
      if (chunked_) out_ += "transfer-encoding: chunked\r\n";
    } else {
      out_ += "content-length: " + std::to_string(reply.body.size()) + "\r\n";
    }
    out_ += "\r\n";
    if (!stream && !head_only_) out_ += reply.body;
    pull_ = std::move(pull);
    if (stream && head_only_) pull_ = nullptr;
    last_ = pull_ == nullptr;
    Write();
  }

  // The next piece of a stream, where nothing is on its way.
  void Pump() {
    if (!answering_ || writing_ || pull_ == nullptr) return;
    std::string piece;
    bool more = true;
    while (more && piece.size() < kPieceBytes) {
      const size_t before = piece.size();
      more = pull_(piece);
      if (piece.size() == before) break;
    }
    if (piece.empty() && more) return;
    out_.clear();
    if (chunked_ && !piece.empty()) {
      static constexpr char kHex[] = "0123456789abcdef";
      std::string size;
      for (size_t n = piece.size(); n > 0; n >>= 4) size.insert(size.begin(), kHex[n & 15]);
      out_ = size + "\r\n" + piece + "\r\n";
    } else {
      out_ = std::move(piece);
    }
    if (!more) {
      if (chunked_) out_ += "0\r\n\r\n";
      pull_ = nullptr;
      last_ = true;
    }
    Write();
  }

  void Write() {
    writing_ = true;
    sent_ = 0;
    WriteSome();
  }

  void WriteSome() {
    Deadline(shared_->options.write_seconds, [this] { Gone(); });
    socket_.async_write_some(asio::buffer(out_.data() + sent_, out_.size() - sent_),
                             [self = shared_from_this()](Code error, size_t n) {
                               if (error) {
                                 self->writing_ = false;
                                 return self->Gone();
                               }
                               self->sent_ += n;
                               if (self->sent_ < self->out_.size()) return self->WriteSome();
                               self->writing_ = false;
                               self->Written();
                             });
  }

  void Written() {
    timer_.cancel();
    if (!answering_) return;
    if (!last_) return Pump();
    answering_ = false;
    --shared_->exchanges;
    EndExchange();
    out_ = {};
    if (keep_alive_) return Rest();
    Code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    if (!lingering_) return Close();
    // A refused body may still be on its way: closing now would reset the connection before the
    // client has read why.
    Deadline(1, [this] { Close(); });
    Linger(0);
  }

  void Linger(size_t taken) {
    const auto room = buffer_.prepare(64 << 10);
    socket_.async_read_some(room, [self = shared_from_this(), taken](Code error, size_t n) {
      if (error || taken + n > (size_t{64} << 20)) return self->Close();
      self->Linger(taken + n);
    });
  }

  void EndExchange();

  // ---- Time and end ----

  template <typename Late>
  void Deadline(double seconds, const Late& late) {
    timer_.expires_after(Seconds(seconds));
    timer_.async_wait([self = shared_from_this(), late](Code error) {
      if (!error && self->timer_.expiry() <= std::chrono::steady_clock::now()) late();
    });
  }

  void Close() {
    Code ignored;
    timer_.cancel();
    socket_.close(ignored);
    if (answering_) Gone();
  }

  const std::shared_ptr<Shared> shared_;
  Socket socket_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  bool resting_ = false, late_ = false, keep_alive_ = false, http11_ = true, head_only_ = false;
  bool watching_ = false, answering_ = false, started_ = false, lingering_ = false;
  bool writing_ = false, chunked_ = false, last_ = false;
  std::string id_, out_;
  size_t sent_ = 0;
  Exchange::Pull pull_;
  std::weak_ptr<HttpExchange> exchange_;
};

class HttpExchange : public Exchange {
 public:
  HttpExchange(std::shared_ptr<Connection> connection, HttpRequest request)
      : connection_(std::move(connection)), request_(std::move(request)) {}
  ~HttpExchange() override {
    if (!answered_) Reply(ApiError{.status = 500, .message = "the request was lost"}.ToReply());
  }
  const HttpRequest& request() const override { return request_; }

  void Reply(HttpReply reply) override { Answer(std::move(reply), nullptr); }
  void Stream(HttpReply head, Pull pull) override { Answer(std::move(head), std::move(pull)); }
  void Wake() override {
    if (woken_->exchange(true)) return;
    asio::post(connection_->executor(), [connection = connection_, woken = woken_] {
      woken->store(false);
      connection->Pump();
    });
  }
  void Post(std::function<void()> work) override {
    asio::post(connection_->executor(), std::move(work));
  }
  void OnGone(std::function<void()> gone) override {
    {
      const std::lock_guard lock(mutex_);
      if (!has_gone_) {
        gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }
  void TellGone() {
    std::function<void()> gone;
    {
      const std::lock_guard lock(mutex_);
      has_gone_ = true;
      gone = std::exchange(gone_, nullptr);
    }
    if (gone) gone();
  }
  void Forget() {
    const std::lock_guard lock(mutex_);
    gone_ = nullptr;
  }

 private:
  void Answer(HttpReply reply, Pull pull) {
    if (answered_.exchange(true)) return;
    asio::post(connection_->executor(), [connection = connection_, reply = std::move(reply),
                                         pull = std::move(pull)]() mutable {
      connection->StartReply(std::move(reply), std::move(pull));
    });
  }

  const std::shared_ptr<Connection> connection_;
  const HttpRequest request_;
  std::atomic<bool> answered_{false};
  const std::shared_ptr<std::atomic<bool>> woken_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex mutex_;
  bool has_gone_ = false;
  std::function<void()> gone_;
};

void Connection::Handle() {
  timer_.cancel();
  HttpRequest request;
  auto& message = parser_->get();
  const auto text = [](const auto& view) { return std::string(view.data(), view.size()); };
  request.method = text(message.method_string());
  request.path = text(message.target());
  if (const size_t mark = request.path.find('?'); mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  for (const auto& field : message) {
    request.headers.emplace_back(Lower(text(field.name_string())), text(field.value()));
  }
  request.body = std::move(message.body());
  const std::string_view given = request.Header("x-request-id");
  request.id = GoodId(given) ? std::string(given) : NewRequestId();
  id_ = request.id;
  keep_alive_ = message.keep_alive();
  http11_ = message.version() >= 11;
  head_only_ = request.method == "HEAD";
  parser_.reset();
  started_ = false;
  lingering_ = false;
  answering_ = true;
  ++shared_->exchanges;
  auto exchange = std::make_shared<HttpExchange>(shared_from_this(), std::move(request));
  exchange_ = exchange;
  Watch();
  shared_->handler(std::move(exchange));
}

void Connection::TellGone() {
  if (const auto exchange = exchange_.lock()) exchange->TellGone();
}

void Connection::EndExchange() {
  if (const auto exchange = exchange_.lock()) exchange->Forget();
}

}  // namespace

// ---- The listener ----

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, Handler handler)
      : acceptor_(asio::make_strand(context_)), retry_(acceptor_.get_executor()) {
    shared_->options = options;
    shared_->handler = std::move(handler);
  }
  ~Impl() {
    Drain();
    ForEach([](Connection& connection) { connection.Leave(true); });
    work_.reset();
    // Connections that somebody still keeps have nothing to do any more.
    for (int i = 0; i < 100 && shared_->connections > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  Status Listen() {
    const HttpOptions& options = shared_->options;
    const auto fail = [&](const Code& error) {
      return Error{ErrorCode::kIo, error.message(),
                   options.host + ":" + std::to_string(options.port)};
    };
    Code error;
    const auto address =
        asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
    if (error) return Error{ErrorCode::kInvalid, "is not an IP address", options.host};
    const tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(1024, error);
    if (error) return fail(error);
    port_ = acceptor_.local_endpoint(error).port();
    if (error) return fail(error);
    Accept();
    for (int i = 0; i < std::max(1, options.threads); ++i) {
      threads_.emplace_back([this] { context_.run(); });
    }
    return {};
  }

  void Drain() {
    if (shared_->draining.exchange(true)) return;
    asio::post(acceptor_.get_executor(), [this] {
      Code ignored;
      acceptor_.close(ignored);
      retry_.cancel();
    });
    ForEach([](Connection& connection) { connection.Leave(false); });
  }

  int port() const { return port_; }
  const Shared& shared() const { return *shared_; }

 private:
  template <typename Call>
  void ForEach(const Call& call) {
    std::vector<std::shared_ptr<Connection>> all;
    {
      const std::lock_guard lock(shared_->mutex);
      for (Connection* connection : shared_->open) {
        if (auto alive = connection->weak_from_this().lock()) all.push_back(std::move(alive));
      }
    }
    for (const auto& connection : all) call(*connection);
  }

  void Accept() {
    acceptor_.async_accept(asio::make_strand(context_), [this](Code error, Socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {
        // No file descriptors, for instance: others will close theirs.
        retry_.expires_after(std::chrono::milliseconds(50));
        retry_.async_wait([this](Code stopped) {
          if (!stopped && acceptor_.is_open()) Accept();
        });
        return;
      }
      if (shared_->connections < shared_->options.max_connections) {
        auto connection = std::make_shared<Connection>(shared_, std::move(socket));
        asio::post(connection->executor(), [connection] { connection->Start(); });
      }  // else it is closed here
      Accept();
    });
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  tcp::acceptor::rebind_executor<asio::strand<asio::io_context::executor_type>>::other acceptor_;
  asio::steady_timer retry_;
  std::vector<std::thread> threads_;
  int port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options, Handler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  if (Status status = impl->Listen(); !status.ok()) return status.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }
void HttpServer::Drain() { impl_->Drain(); }
int HttpServer::connections() const { return impl_->shared().connections; }
int HttpServer::exchanges() const { return impl_->shared().exchanges; }

}  // namespace pawl::server
