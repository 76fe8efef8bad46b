import Crypto
import Glibc
import Storage

/// Copies files and sums them up, in pieces, so that memory does not depend on their size.
enum FileCopy {
    private static let pieceBytes = 1 << 20

    /// A file's length and SHA-256.
    struct Sum: Hashable, Sendable {
        var size: Int64
        var sha256: String
    }

    /// Copies a file; the copy is synced on return, its name is not.
    /// - Parameter onPiece: told how many bytes were copied.
    /// - Returns: what was copied.
    /// - Throws: `DiskError`, with `EEXIST` if the target is there.
    static func copy(
        from source: String, to target: String, mode: mode_t, onPiece: (Int) -> Void
    ) throws(DiskError) -> Sum {
        let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard output >= 0 else { throw DiskError(operation: "open", path: target, code: errno) }
        defer { close(output) }
        let sum = try read(source) { (piece) throws(DiskError) in
            var rest = piece[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(output, $0.baseAddress, $0.count) }
                guard count > 0 else { throw DiskError(operation: "write", path: target, code: errno) }
                rest = rest.dropFirst(count)
            }
            onPiece(piece.count)
        }
        guard fsync(output) == 0 else { throw DiskError(operation: "fsync", path: target, code: errno) }
        return sum
    }

    /// Reads a file to its end.
    static func sum(of path: String, onPiece: (Int) -> Void) throws(DiskError) -> Sum {
        try read(path) { (piece) throws(DiskError) in onPiece(piece.count) }
    }

    private static func read(
        _ path: String, _ use: ([UInt8]) throws(DiskError) -> Void
    ) throws(DiskError) -> Sum {
        let file = try DiskFile(path: path, flags: O_RDONLY)
        var hasher = SHA256()
        var position = 0
        while true {
            let piece = try file.bytes(at: position, count: pieceBytes)
            if piece.isEmpty { break }
            hasher.update(data: piece)
            position += piece.count
            try use(piece)
        }
        let digits = hasher.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return Sum(size: Int64(position), sha256: digits)
    }
}
