import Foundation
import TestSupport

/// A disk of its own for one folder, small enough to be filled: a file system in memory, which only root may mount.
final class SmallDisk {
    let path: String

    /// Whether this process may make one.
    static let isPossible: Bool = {
        let folder = NSTemporaryDirectory() + "zonekeeper-disk-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return (try? SmallDisk(at: folder, megabytes: 1)) != nil
    }()

    init(at path: String, megabytes: Int) throws {
        self.path = path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Self.run("mount", "-t", "tmpfs", "-o", "size=\(megabytes)m,mode=700", "tmpfs", path)
    }

    deinit { try? Self.run("umount", "--lazy", path) }

    /// Takes all the room that is left, the last byte too.
    func fill() throws {
        let file = try FileHandle(forWritingTo: try emptyFile())
        defer { try? file.close() }
        for size in [1 << 20, 4_096, 1] {
            let zeros = Data(count: size)
            while (try? file.write(contentsOf: zeros)) != nil {}
        }
    }

    /// Gives the room back.
    func empty() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: path) where name.hasPrefix("filler-") {
            try FileManager.default.removeItem(atPath: "\(path)/\(name)")
        }
    }

    private func emptyFile() throws -> URL {
        let file = "\(path)/filler-\(UUID().uuidString)"
        try require(FileManager.default.createFile(atPath: file, contents: nil), "cannot make \(file)")
        return URL(filePath: file)
    }

    private static func run(_ words: String...) throws {
        let finished = try FinishedProgram(words)
        try require(finished.status == 0, "\(words.joined(separator: " ")) failed: \(finished.errors)")
    }
}
