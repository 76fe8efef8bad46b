import ConsoleFiles
import Crypto
import Foundation
import RecordModel

/// The console's files: those in the binary, or those of a folder while the console is worked on.
struct ConsolePages: Sendable {
    /// A file as browsers get it.
    struct File: Sendable {
        var bytes: [UInt8]
        /// The same in the form of gzip; nil where that is no shorter.
        var packed: [UInt8]?
        var contentType: String
        /// The hexadecimal digits of the bytes' SHA-256.
        var hash: String

        init(path: String, bytes: [UInt8]) {
            self.bytes = bytes
            packed = Self.pack(bytes)
            contentType = Self.contentType(of: path)
            hash = Hex.encode(Array(SHA256.hash(data: bytes)))
        }

        private static func pack(_ bytes: [UInt8]) -> [UInt8]? {
            let packed = [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
                count = bytes.isEmpty ? 0 : console_gzip(bytes, bytes.count, buffer.baseAddress, bytes.count)
            }
            return packed.isEmpty ? nil : packed
        }

        private static func contentType(of path: String) -> String {
            switch path.split(separator: ".").last {
            case "html": "text/html; charset=UTF-8"
            case "js": "text/javascript; charset=UTF-8"
            case "css": "text/css; charset=UTF-8"
            case "svg": "image/svg+xml"
            case "png": "image/png"
            case "json": "application/json; charset=UTF-8"
            default: "application/octet-stream"
            }
        }
    }

    private enum Source {
        case embedded([String: File])
        case folder(String)
    }

    private let source: Source

    /// Those in the binary.
    static let embedded = ConsolePages(
        source: .embedded(
            Dictionary(
                uniqueKeysWithValues: (0..<console_file_count()).map { index in
                    let file = console_file_at(index)
                    let path = String(cString: file.path)
                    let bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.size))
                    return (path, File(path: path, bytes: bytes))
                })))

    private init(source: Source) { self.source = source }

    /// Those of a folder, as it is when they are asked for.
    init(folder: String) { source = .folder(folder) }

    /// The file at a path below the console's folder.
    /// - Parameter path: the names of folders and of the file.
    func file(_ path: [String]) -> File? {
        let isPlain = path.allSatisfy { !$0.hasPrefix(".") && !$0.contains { $0 == "/" || $0 == "\0" } }
        guard isPlain, !path.isEmpty else { return nil }
        let name = path.joined(separator: "/")
        switch source {
        case .embedded(let files): return files[name]
        case .folder(let folder):
            return FileManager.default.contents(atPath: "\(folder)/\(name)").map { File(path: name, bytes: Array($0)) }
        }
    }
}
