package import Crypto
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Files that only their owner can read: created with mode 0600.
package enum PrivateFile {
    /// Creates a file, which must not exist.
    /// - Throws: if it exists or cannot be written. Nothing is left behind then.
    package static func create(_ path: String, _ text: String) throws(ServiceClientError) {
        guard try createIfMissing(path, text) else {
            throw ServiceClientError("\(path) is there already; name a file that is not")
        }
    }

    /// Creates a file unless it exists.
    /// - Returns: whether it was created.
    /// - Throws: if it cannot be written. Nothing is left behind then.
    package static func createIfMissing(_ path: String, _ text: String) throws(ServiceClientError) -> Bool {
        switch make(path, text) {
        case 0: return true
        case EEXIST: return false
        case let number: throw ServiceClientError("\(path) cannot be made: \(String(cString: strerror(number)))")
        }
    }

    /// Replaces or creates a file atomically. When this returns, both its content and its name in the folder are
    /// durable.
    /// - Throws: if it cannot be written. The file then has either the old or the new text.
    package static func replace(_ path: String, with text: String) throws(ServiceClientError) {
        let draft = path + ".new-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        var number = make(draft, text)
        if number == 0, rename(draft, path) != 0 {
            number = errno
            unlink(draft)
        }
        if number == 0 { number = syncFolder(of: path) }
        // The draft has a random name each time.
        if number != 0 {
            throw ServiceClientError("\(path) cannot be written: \(String(cString: strerror(number)))")
        }
    }

    private static func make(_ path: String, _ text: String) -> Int32 {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var number: Int32 = fchmod(descriptor, 0o600) == 0 ? 0 : errno
        if number == 0 { number = Array(text.utf8).withUnsafeBytes { writeAll($0, to: descriptor) } }
        if number == 0, fsync(descriptor) != 0 { number = errno }
        if number != 0 { unlink(path) }
        return number
    }

    private static func syncFolder(of path: String) -> Int32 {
        let parent = (path as NSString).deletingLastPathComponent
        let folder = open(parent.isEmpty ? "." : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return errno }
        defer { close(folder) }
        return fsync(folder) == 0 ? 0 : errno
    }
}

/// Writes bytes to an open file, up to the first error that is not an interruption.
/// - Returns: 0, or the number of that error.
package func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count < 0, errno == EINTR || errno == EAGAIN { continue }
        guard count > 0 else { return count == 0 ? ENOSPC : errno }
        rest = rest.dropFirst(count)
    }
    return 0
}

/// A file that holds one secret on one line.
package enum SecretFile {
    /// The secret, without space around it.
    package static func read(_ path: String) throws(ServiceClientError) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = chunk.withUnsafeMutableBytes { systemRead(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(path) }
            guard count > 0 else { break }
            bytes += chunk[..<count]
            guard bytes.count <= bytesMax else {
                throw ServiceClientError(
                    "\(path) cannot be read: it is larger than \(bytesMax) bytes, and no secret is")
            }
        }
        return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static let bytesMax = 1 << 20

    private static func unreadable(_ path: String) -> ServiceClientError {
        ServiceClientError("\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
}

private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(descriptor, bytes, count)
}

/// A server-to-server key as it is kept on disk: the private key as plain PEM in one file, and beside it, in a file
/// whose name ends in `.id`, the id under which the public key is registered.
///
/// Earlier versions kept the id in a line `Key-ID: ...` below the PEM block. Such files are still read.
package struct ServerKeyFile: Sendable {
    /// 64 hexadecimal digits.
    package var id: String
    /// On the curve P-256.
    package var key: P256.Signing.PrivateKey

    /// Begins the line with the id in files of earlier versions.
    private static let idLabel = "Key-ID:"

    package init(id: String, key: P256.Signing.PrivateKey) {
        self.id = id
        self.key = key
    }

    /// The file beside a key file that holds the key's id.
    package static func idPath(of path: String) -> String { path + ".id" }

    /// - Parameter id: counts more than the file beside the key, and is needed if there is none.
    /// - Throws: an error that names the file, and never what is in it.
    package init(path: String, id: String?) throws(ServiceClientError) {
        let idPath = Self.idPath(of: path)
        let beside = try id == nil && access(idPath, F_OK) == 0 ? SecretFile.read(idPath) : nil
        if let beside, beside.isEmpty || beside.contains(where: { $0.isWhitespace || !$0.isASCII }) {
            throw ServiceClientError("\(idPath) holds no key id: one word is expected, as `key list` shows it")
        }
        try self.init(text: try SecretFile.read(path), id: id ?? beside, path: path)
    }

    /// Reads what a key file holds: PKCS #8 or SEC 1, as OpenSSL writes them.
    package init(text: String, id: String?, path: String) throws(ServiceClientError) {
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("-----BEGIN") && $0.hasSuffix("PRIVATE KEY-----") }),
            let end = lines[begin...].firstIndex(where: { $0.hasPrefix("-----END") })
        else { throw ServiceClientError("\(path) holds no private key: '-----BEGIN PRIVATE KEY-----' is expected") }
        if lines[begin].contains("ENCRYPTED") || lines[begin...end].contains(where: { $0.hasPrefix("Proc-Type:") }) {
            throw ServiceClientError(
                "\(path) is locked with a password; unlock it with `openssl pkcs8 -in \(path) -topk8 -nocrypt`")
        }
        let key: P256.Signing.PrivateKey
        do {
            key = try P256.Signing.PrivateKey(pemRepresentation: lines[begin...end].joined(separator: "\n"))
        } catch {
            throw ServiceClientError("\(path) holds no private key of the curve P-256 (prime256v1)")
        }
        let own = lines.first { $0.hasPrefix(Self.idLabel) }.map {
            $0.dropFirst(Self.idLabel.count).trimmingCharacters(in: .whitespaces)
        }
        guard let id = id ?? own, !id.isEmpty else {
            throw ServiceClientError(
                "the id of the key in \(path) is not known: name it with --key-id, or write it to "
                    + Self.idPath(of: path))
        }
        self.init(id: id, key: key)
    }

    /// Writes the id beside a private key that is there already.
    package static func writeID(_ id: String, besideKey path: String) throws(ServiceClientError) {
        try PrivateFile.create(idPath(of: path), id + "\n")
    }
}

extension ServerKeyFile {
    /// Signs a request as CloudKit Web Services has it: date, SHA-256 of the body, and what follows the host, query
    /// included.
    ///
    /// Every signature is different, so a repeated request is not taken for a replay.
    /// - Parameters:
    ///   - target: as it is on the wire.
    ///   - time: milliseconds since 1970.
    package func headers(target: String, body: [UInt8], time: Int64) throws -> [(name: String, value: String)] {
        let date = Self.date(time)
        let message = Self.message(date: date, target: target, body: body)
        let signature = try key.signature(for: message)
        return [
            ("X-Apple-CloudKit-Request-KeyID", id), ("X-Apple-CloudKit-Request-ISO8601Date", date),
            ("X-Apple-CloudKit-Request-SignatureV1", signature.derRepresentation.base64EncodedString()),
        ]
    }

    /// A time as it is signed, to the millisecond: a leader that begins to remember signatures refuses those that are
    /// dated before, which with whole seconds would be all of its first second.
    private static func date(_ time: Int64) -> String {
        let (seconds, milliseconds) = time.quotientAndRemainder(dividingBy: 1_000)
        let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
        return "\(text.dropLast()).\(String(1_000 + milliseconds).dropFirst())Z"
    }

    /// The bytes that are signed.
    package static func message(date: String, target: String, body: [UInt8]) -> [UInt8] {
        let digest = Data(SHA256.hash(data: body)).base64EncodedString()
        return Array("\(date):\(digest):\(target)".utf8)
    }
}
