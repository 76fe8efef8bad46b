import Directory
import HTTPTypes
import Hummingbird
import NIOCore
import RecordModel
import Service

// Uploads and downloads of files, at URLs that are all the right that they need: what else a request says of its sender
// is not looked at.
extension WebResponder {
    func assets(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        let segments = call.url.segments
        guard segments.count >= 4, segments[1] == "1" else { throw Self.noSuchAsset }
        switch segments[2] {
        case "upload" where segments.count == 4:
            try Self.require(["POST", "PUT"], of: call)
            do throws(RequestFailure) {
                return try await upload(call, &headers)
            } catch {
                // The rest of the file is not waited for.
                headers.add("Connection", "close")
                throw error
            }
        case "download" where segments.count <= 5:
            try Self.require(["GET", "HEAD"], of: call)
            return try await download(call)
        default: throw Self.noSuchAsset
        }
    }

    private static let noSuchAsset = RequestFailure(
        .notFound, "there is nothing at this path; assets/upload and reads of records give URLs of assets")

    private static func require(_ methods: [String], of call: WebCall) throws(RequestFailure) {
        guard methods.contains(call.request.method.rawValue) else {
            throw .badRequest(
                "this URL is called with \(methods.joined(separator: " or "))",
                details: .methods(methods))
        }
    }

    private func ticket<Ticket: AssetTicket>(
        of call: WebCall, as _: Ticket.Type = Ticket.self
    ) async throws(RequestFailure) -> Ticket {
        try await AssetTransfers(context.service).open(
            Base64URL.decode(call.url.segments[3]), as: Ticket.self, address: call.address)
    }

    /// What a transfer holds in memory: parts on their way between the socket and the disk.
    private static let transferBytes = 512 << 10

    /// Takes room for a file on its way, for as long as what is returned lives.
    /// - Parameter bytes: what it holds in memory.
    func holdTransfer(
        _ call: WebCall, of container: String, bytes: Int = transferBytes
    ) throws(RequestFailure) -> HeldBytes {
        let holder = ByteHolder(call, container: container)
        if let held = HeldBytes(bytes, in: context.transfers, for: holder) { return held }
        throw .nothingDone("this node has as many files on their way as it may, or as many of yours; use another one")
    }
}

// Uploads.
extension WebResponder {
    private func upload(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        let ticket = try await ticket(of: call, as: AssetUploadTicket.self)
        var multipart =
            call.request.method == .post
            ? try MultipartReader(contentType: call.request.headers[.contentType]) : nil
        let length = call.request.headers[.contentLength].flatMap(UInt64.init)
        let overhead = multipart == nil ? 0 : UInt64(MultipartReader.overheadBytesMax)
        if let length, length > ticket.bytesMax + overhead { throw IncomingAsset.tooLarge(ticket.bytesMax) }
        let held = try holdTransfer(call, of: ticket.zone.database.container)
        defer { withExtendedLifetime(held) {} }
        var notes = RequestNotes()
        defer { headers.add(notes) }
        let file = try await AssetTransfers(context.service).receive(ticket, &notes)
        do throws(RequestFailure) {
            try await read(call, expecting: length, &multipart, into: file)
            let asset = try await file.finish()
            return Reply { writer in
                writer.key("singleFile")
                writer.asset(asset)
            }
        } catch {
            await file.abandon()
            throw error
        }
    }

    /// - Throws: also where the body was not whole: a connection that is cut looks like a body's end.
    private func read(
        _ call: WebCall, expecting length: UInt64?, _ multipart: inout MultipartReader?, into file: IncomingAsset
    ) async throws(RequestFailure) {
        let pace = UploadPace(began: context.service.uptime)
        var count: UInt64 = 0
        var parts = call.request.body.makeAsyncIterator()
        while let part = try await Self.next(&parts) {
            count += UInt64(part.readableBytes)
            if let problem = pace.problem(after: count, now: context.service.uptime) {
                throw .badRequest(problem, details: .bodyTooSlow)
            }
            if let bytes = try multipart?.take(part.readableBytesView) {
                if !bytes.isEmpty { try await file.write(bytes) }
            } else {
                try await file.write(part.readableBytesView)
            }
        }
        let isWhole = length.map { $0 == count } ?? (call.clientDisconnect?.isOver != true)
        guard isWhole else {
            throw .badRequest("the body ended after \(count) bytes, before it was whole")
        }
        try multipart?.finish()
    }

    private static func next(_ parts: inout RequestBody.AsyncIterator) async throws(RequestFailure) -> ByteBuffer? {
        do {
            return try await parts.next()
        } catch {
            throw .badRequest("the request's body did not arrive: \(error)")
        }
    }
}

// Downloads.
extension WebResponder {
    private func download(_ call: WebCall) async throws(RequestFailure) -> Reply {
        let ticket = try await ticket(of: call, as: AssetDownloadTicket.self)
        let secret = try await context.service.requireSecret()
        let size = ticket.asset.size
        let tag = "\"\(secret.checksum(of: ticket.asset, in: ticket.zone.database.container))\""
        let wanted = WantedBytes(
            range: call.request.headers[.range], ifRange: call.request.headers[.ifRange], tag: tag, size: size)
        var range = 0..<size
        switch wanted {
        case .all: break
        case .part(let part): range = part
        case .unsatisfiable: return Self.unsatisfiable(size, call)
        }
        let isHead = call.request.method == .head
        // Whether the file can be had a byte tells, too.
        let bytes = try await AssetTransfers(context.service).read(ticket, range: isHead ? range.prefix(1) : range)
        let held = try holdTransfer(call, of: ticket.zone.database.container)
        var reply = Reply(
            status: wanted == .all ? 200 : 206, body: [], contentType: "application/octet-stream")
        reply.headers = Self.headers(of: ticket, tag: tag, name: call.url.segments[3...].dropFirst().first, context)
        if case .part(let part) = wanted {
            reply.headers.append(("content-range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"))
        }
        if isHead {
            reply.headers.append(("content-length", "\(range.count)"))
            return reply
        }
        reply.streamBytes = range.count
        reply.stream = { [service = context.service, connection = call.clientDisconnect] writer in
            try await connection.write(bytes, to: &writer) { AssetTransfers(service).carried($0, for: ticket.zone) }
            try await writer.finish(nil)
            withExtendedLifetime(held) {}
        }
        return reply
    }

    private static func unsatisfiable(_ size: UInt64, _ call: WebCall) -> Reply {
        let error = ServiceError(.badRequest, "Range: the file has \(size) bytes, none of them in what was asked for")
        var reply = Reply(error, status: 416, uuid: call.uuid)
        reply.headers.append(("content-range", "bytes */\(size)"))
        return reply
    }

    /// Whatever users upload, a browser is to save it: it neither shows nor runs it on this origin.
    private static func headers(
        of ticket: AssetDownloadTicket, tag: String, name: String?, _ context: WebContext
    ) -> [(name: String, value: String)] {
        let secondsLeft = max(0, (ticket.expires - context.service.now) / 1_000)
        return [
            ("accept-ranges", "bytes"), ("cache-control", "private, max-age=\(secondsLeft)"),
            ("content-disposition", "attachment; filename=\"\(fileName(name ?? "asset"))\""),
            ("content-security-policy", "default-src 'none'; sandbox"),
            ("cross-origin-resource-policy", "cross-origin"), ("etag", tag),
            // That of the whole file, also where a part of it is sent (RFC 9530, section 3).
            ("repr-digest", "sha-256=:\(Base64.encode(ticket.asset.sha256)):"), ("x-content-type-options", "nosniff"),
        ]
    }

    /// A name that means a file in the folder at hand, on any system.
    static func fileName(_ text: String) -> String {
        var name = ""
        for character in text.unicodeScalars.prefix(128) {
            switch character {
            case "a"..."z", "A"..."Z", "0"..."9", ".", "-", "_", " ": name.unicodeScalars.append(character)
            default: name.append("_")
            }
        }
        while let first = name.first, first == "." || first == " " { name.removeFirst() }
        return name.isEmpty ? "asset" : name
    }
}

/// How slowly a file may come: a slow one holds a place that others wait for.
struct UploadPace {
    /// The least on the average of all the time so far.
    static let bytesPerSecondMin: UInt64 = 16 << 10
    /// How long an upload may be slower at first.
    static let secondsBefore: UInt64 = 30
    /// How long an upload may take in all, however steadily it comes.
    static let secondsMax: UInt64 = 3_600

    /// Nanoseconds of the node's monotonic clock.
    var began: UInt64

    /// What is wrong where so many bytes have come by now; nil where they came fast enough.
    func problem(after bytes: UInt64, now: UInt64) -> String? {
        let milliseconds = (now - min(now, began)) / 1_000_000
        if milliseconds > Self.secondsMax * 1_000 { return "the file took longer than \(Self.secondsMax) s" }
        guard milliseconds > Self.secondsBefore * 1_000, milliseconds > bytes * 1_000 / Self.bytesPerSecondMin
        else { return nil }
        return "the file came with less than \(Self.bytesPerSecondMin) bytes a second: use a better connection"
    }
}

/// Which bytes of a file a request wants (RFC 9110, section 14).
enum WantedBytes: Equatable {
    case all
    case part(Range<UInt64>)
    /// A range that begins behind the end.
    case unsatisfiable

    /// One range is served; several, and what is not understood, mean all.
    /// - Parameters:
    ///   - range: the header `Range`.
    ///   - ifRange: the header `If-Range`; a range is for that version of the file only. Dates name none of ours.
    init(range: String?, ifRange: String?, tag: String, size: UInt64) {
        self = .all
        guard let range, ifRange == nil || ifRange == tag, range.lowercased().hasPrefix("bytes=") else { return }
        let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]) else { return }
        switch (first, last) {
        case (nil, nil): return
        case (nil, let suffix?):
            self = suffix == 0 || size == 0 ? .unsatisfiable : .part(size - min(suffix, size)..<size)
        case (let first?, let last):
            if let last, last < first { return }
            self = first >= size ? .unsatisfiable : .part(first..<min(last ?? size, size - 1) + 1)
        }
    }

    /// Digits only; an inner nil where there are none. What 64 bits do not hold is as much as they do.
    private static func number(_ text: Substring) -> UInt64?? {
        let text = text.drop { $0 == " " }
        guard !text.isEmpty else { return .some(nil) }
        guard text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else { return nil }
        return .some(UInt64(text) ?? .max)
    }
}
