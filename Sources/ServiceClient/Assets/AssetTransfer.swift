import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
package import RecordModel

/// Moves the bytes of assets: to a URL for an upload, and from one for a download.
///
/// Such a URL says by itself what it allows, so that no token goes with it. It is good at every node of the cluster:
/// where the one that it names is lost, the others are asked. Bytes are streamed, and never in memory as a whole.
package struct AssetTransfer: Sendable {
    private let client: ServiceClient
    private let patienceSeconds: Double
    /// When all of it ends, by the client's clock; nil for never.
    private let end: Duration?

    /// - Parameters:
    ///   - patienceSeconds: how long to go on without a byte of progress.
    ///   - limitSeconds: how long all of it may take; nil for any time.
    package init(client: ServiceClient, patienceSeconds: Double, limitSeconds: Double? = nil) {
        self.client = client
        self.patienceSeconds = patienceSeconds
        end = limitSeconds.map { client.waiting.now() + .seconds($0) }
    }

    private static let answerBytesMax = 1 << 20

    // MARK: Upload

    /// Sends a file. It begins again where the connection is lost: a file that arrived in part is dropped.
    /// - Parameter progress: hears the bytes that were handed to the connection; of a second attempt from 0 on.
    /// - Returns: the asset's dictionary, with the receipt that a save needs.
    /// - Throws: `AssetFileError` about the file, `ServiceFailure` (410 for a URL that has expired, 413 for a file that
    ///   is too large), `ServiceUnreachable`, `CancellationError`.
    package func upload(
        _ source: AssetSource, to url: String, progress: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> JSONValue {
        let response = try await answer(from: url) { address in
            do {
                return try await post(source, to: address, progress: progress)
            } catch {
                if let failure = source.takeFailure() { throw failure }
                throw error
            }
        }
        guard let asset = try? response.parsed()["singleFile"], asset["receipt"]?.string != nil else {
            throw ServiceFailure(ServiceResponse(status: response.status, headers: response.headers, body: []))
        }
        guard asset["size"] == .integer(source.size) else {
            throw AssetDamaged(
                description:
                    "\(source.path) has \(source.size) bytes, and another number of them arrived: send it again")
        }
        return asset
    }

    private func post(
        _ source: AssetSource, to address: String, progress: @escaping @Sendable (Int64) -> Void
    ) async throws -> Attempt<ServiceResponse> {
        var message = try HTTPClientRequest(to: address)
        message.method = .POST
        message.headers.add(name: "Content-Type", value: "application/octet-stream")
        message.body =
            source.size == 0
            ? .bytes(ByteBuffer())
            : .stream(AssetBytes(source: source, sent: progress), length: .known(source.size))
        let answer = try await client.http.execute(message, deadline: deadline)
        let response = try await Self.whole(answer)
        return response.isSuccess ? .done(response) : .refused(response)
    }

    private static func whole(_ answer: HTTPClientResponse) async throws -> ServiceResponse {
        let body = try await answer.body.collect(upTo: answerBytesMax)
        return ServiceResponse(
            status: Int(answer.status.code), headers: answer.headers, body: Array(body.readableBytesView))
    }

    // MARK: Download

    /// Receives a file. Where a connection is lost it goes on behind the bytes that are there, at any node. Where other
    /// bytes came, as of a copy that a disk damaged, it begins again at the next node.
    /// - Parameters:
    ///   - size: how many bytes are expected.
    ///   - progress: hears how many bytes are there.
    /// - Throws: `AssetFileError` about the file that is written, `AssetDamaged`, `ServiceFailure` (410 for a URL that
    ///   has expired, 404 for a file that is gone), `ServiceUnreachable`, `CancellationError`.
    package func download(
        _ url: String, size: Int64, to sink: AssetSink, progress: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws {
        let attempts = max(2, Self.addresses(url, of: client.urls).count)
        for attempt in 0..<attempts {
            if attempt > 0 { try sink.restart() }
            var digest: [UInt8]?
            if size > 0 {
                digest = try await answer(from: url, beginningWith: attempt, progressed: { sink.offset }) { address in
                    try await get(address, size: size, to: sink, progress: progress)
                }
            }
            guard let digest, digest != sink.digest else { return sink.finish() }
        }
        throw AssetDamaged(description: "the bytes that came are not those of the asset")
    }

    /// The SHA-256 of the whole file, where the node says it (RFC 9530).
    private static func digest(_ headers: HTTPHeaders) -> [UInt8]? {
        guard let field = headers.first(name: "Repr-Digest"), let start = field.range(of: "sha-256=:"),
            let end = field[start.upperBound...].firstIndex(of: ":")
        else { return nil }
        return Base64.decode(String(field[start.upperBound..<end]))
    }

    private func get(
        _ address: String, size: Int64, to sink: AssetSink, progress: @Sendable (Int64) -> Void
    ) async throws -> Attempt<[UInt8]?> {
        var message = try HTTPClientRequest(to: address)
        let offset = sink.offset
        // Without the tag of the bytes that are there nothing says that the rest belongs to them.
        if offset > 0, let tag = sink.tag {
            message.headers.add(name: "Range", value: "bytes=\(offset)-")
            message.headers.add(name: "If-Range", value: tag)
        }
        let answer = try await client.http.execute(message, deadline: deadline)
        switch answer.status {
        case .ok: try sink.restart()
        case .partialContent:
            guard answer.headers.first(name: "Content-Range") == "bytes \(offset)-\(size - 1)/\(size)" else {
                throw AssetDamaged(description: "the node sent another part of the asset than was asked for")
            }
        default: return .refused(try await Self.whole(answer))
        }
        sink.tag = answer.headers.first(name: "ETag").flatMap { $0.hasPrefix("W/") ? nil : $0 }
        do {
            for try await chunk in answer.body {
                guard sink.offset + Int64(chunk.readableBytes) <= size else { throw Self.wrongSize(size) }
                try await sink.write(chunk)
                progress(sink.offset)
                if isOver { throw TimeIsUp() }
            }
        } catch let error where sink.offset == size && !Self.isFinal(error) {
            // The connection was lost behind the last byte: there is no rest to ask for.
        }
        // A whole answer of another length is another file; a cut one has thrown.
        guard sink.offset == size else { throw Self.wrongSize(size) }
        return .done(Self.digest(answer.headers))
    }

    private static func wrongSize(_ size: Int64) -> AssetDamaged {
        AssetDamaged(description: "the asset has \(size) bytes, and the node sends another number of them")
    }

    // MARK: Attempts

    private enum Attempt<Value: Sendable>: Sendable {
        case done(Value)
        case refused(ServiceResponse)
    }

    private struct Failures {
        var unreachable = ServiceUnreachable()
        private(set) var busy: ServiceFailure?

        /// What the caller is told, unless it is tried again.
        var error: any Error { if let busy { busy } else { unreachable } }

        /// - Throws: the failure, where no other try would mend it.
        mutating func note(_ failure: ServiceFailure) throws {
            guard failure.status == 429 || failure.status == 503 else { throw failure }
            busy = failure
        }
    }

    private var isOver: Bool { end.map { client.waiting.now() >= $0 } ?? false }

    private var deadline: NIODeadline {
        guard let end else { return .distantFuture }
        return .now() + .nanoseconds(Int64(max(0.001, (end - client.waiting.now()) / .seconds(1)) * 1e9))
    }

    /// Asks one node after the other, and again after a pause, for as long as the patience lasts from the first failure
    /// that followed some progress.
    /// - Parameters:
    ///   - first: how many nodes are asked last instead of first.
    ///   - progressed: a number that grows with progress.
    private func answer<Value: Sendable>(
        from url: String, beginningWith first: Int = 0, progressed: () -> Int64 = { 0 },
        _ attempt: (String) async throws -> Attempt<Value>
    ) async throws -> Value {
        let addresses = try addresses(url, beginningWith: first)
        var pauses = RetryPauses(patienceSeconds: patienceSeconds)
        var stuckSince: Duration?
        var known = progressed()
        while true {
            var failures = Failures()
            for address in addresses {
                do {
                    switch try await attempt(address.url) {
                    case .done(let value): return value
                    case .refused(let response): try failures.note(ServiceFailure(response))
                    }
                } catch let error where Self.isFinal(error) {
                    throw error
                } catch {
                    if Task.isCancelled { throw CancellationError() }
                    failures.unreachable.note(error, at: address.node)
                }
                if isOver { break }
            }
            if progressed() > known {
                (known, stuckSince) = (progressed(), nil)
                pauses = RetryPauses(patienceSeconds: patienceSeconds)
            }
            let now = client.waiting.now()
            let since = stuckSince ?? now
            stuckSince = since
            guard !isOver,
                let pause = pauses.next(
                    named: failures.busy?.retryAfterSeconds, elapsed: (now - since) / .seconds(1),
                    portion: .random(in: 0.5...1))
            else { throw failures.error }
            try await client.waiting.sleep(.seconds(pause))
        }
    }

    private func addresses(_ url: String, beginningWith first: Int) throws -> ArraySlice<(node: String, url: String)> {
        let all = Self.addresses(url, of: client.urls)
        guard !all.isEmpty else { throw ServiceClientError("'\(url)' is no URL of an asset") }
        return all[(first % all.count)...] + all[..<(first % all.count)]
    }

    private static func isFinal(_ error: any Error) -> Bool {
        error is ServiceFailure || error is AssetFileError || error is AssetDamaged || error is CancellationError
    }

    /// Where a URL can be asked: at the node that it names, then at the others of the cluster. A host of another name
    /// gets nothing unencrypted.
    static func addresses(_ url: String, of nodes: [String]) -> [(node: String, url: String)] {
        // CloudKit's own clients put a file's name there.
        let url = url.replacingOccurrences(of: "${f}", with: "asset")
        var named: [String] = []
        var target = url
        if let scheme = url.range(of: "://") {
            let slash = url[scheme.upperBound...].firstIndex(of: "/") ?? url.endIndex
            let origin = String(url[..<slash])
            target = String(url[slash...])
            if origin.hasPrefix("https://") || nodes.contains(origin) { named = [origin] }
        }
        guard target.hasPrefix("/") else { return [] }
        return (named + nodes.filter { !named.contains($0) }).map { ($0, $0 + target) }
    }
}

/// Bytes arrived that are not those of the asset.
package struct AssetDamaged: Error, Sendable, CustomStringConvertible {
    /// What was wrong and what to do about it.
    package let description: String
}

extension ServiceSession {
    /// What moves the bytes of the container's assets.
    package func assetTransfer(patience: Duration? = nil, limit: Duration? = nil) -> AssetTransfer {
        AssetTransfer(
            client: client, patienceSeconds: (patience ?? configuration.patience) / .seconds(1),
            limitSeconds: limit.map { $0 / .seconds(1) })
    }
}
