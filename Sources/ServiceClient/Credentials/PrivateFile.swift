import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Files for their owner's eyes only: mode 0600 from their first moment.
package enum PrivateFile {
    /// Makes a file that was not there.
    /// - Throws: if it is there, or cannot be written; nothing is left behind then.
    package static func create(_ path: String, _ text: String) throws(ServiceClientError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST { throw ServiceClientError("\(path) is there already; name a file that is not") }
            throw ServiceClientError("\(path) cannot be made: \(String(cString: strerror(errno)))")
        }
        try write(text, to: descriptor, path)
    }

    /// Puts a text in the place of a file, which is never seen half written, or makes the file. Durable in its content
    /// once this returned.
    /// - Throws: if it cannot be written; the file is as it was then.
    package static func replace(_ path: String, with text: String) throws(ServiceClientError) {
        let draft = path + ".new-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try create(draft, text)
        guard rename(draft, path) == 0 else {
            let reason = String(cString: strerror(errno))
            unlink(draft)
            throw ServiceClientError("\(path) cannot be written: \(reason)")
        }
    }

    private static func write(_ text: String, to descriptor: Int32, _ path: String) throws(ServiceClientError) {
        defer { close(descriptor) }
        var rest = Array(text.utf8)[...]
        var isWritten = fchmod(descriptor, 0o600) == 0
        while isWritten, !rest.isEmpty {
            let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            isWritten = count > 0
            if isWritten { rest = rest.dropFirst(count) }
        }
        guard isWritten, fsync(descriptor) == 0 else {
            let reason = String(cString: strerror(errno))
            unlink(path)
            throw ServiceClientError("\(path) cannot be written: \(reason)")
        }
    }
}

/// The system call, whose name is that of the method above.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}

/// A file that holds one secret on one line.
package enum SecretFile {
    /// The secret, without space around it.
    /// - Throws: if the file cannot be read; the message names it.
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
