import Foundation
import Glibc

/// Files for their owner's eyes only: mode 0600 from their first moment.
enum PrivateFile {
    /// Makes a file that was not there.
    /// - Throws: `CommandFailure` if it is there, or cannot be written; nothing is left behind then.
    static func create(_ path: String, _ text: String) throws(CommandFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST { throw CommandFailure("\(path) is there already; name a file that is not") }
            throw CommandFailure("\(path) cannot be made: \(String(cString: strerror(errno)))")
        }
        try write(text, to: descriptor, path)
    }

    /// Puts a text in the place of a file, which is never seen half written, or makes the file.
    static func replace(_ path: String, with text: String) throws(CommandFailure) {
        let draft = path + ".new-\(getpid())"
        unlink(draft)
        try create(draft, text)
        guard rename(draft, path) == 0 else {
            let reason = String(cString: strerror(errno))
            unlink(draft)
            throw CommandFailure("\(path) cannot be written: \(reason)")
        }
    }

    private static func write(_ text: String, to descriptor: Int32, _ path: String) throws(CommandFailure) {
        defer { close(descriptor) }
        guard fchmod(descriptor, 0o600) == 0, Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count,
            fsync(descriptor) == 0
        else {
            let reason = String(cString: strerror(errno))
            unlink(path)
            throw CommandFailure("\(path) cannot be written: \(reason)")
        }
    }
}
