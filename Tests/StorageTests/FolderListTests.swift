import Glibc
import Storage
import Testing

@Suite("The names in a folder") struct FolderListTests {
    @Test("a folder that cannot be read to its end has no list, so that nothing passes for missing")
    func unreadable() throws {
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
        defer { free(arguments[0]) }
        var child = pid_t()
        try #require(posix_spawnp(&child, "true", nil, nil, &arguments, nil) == 0)
        defer { waitpid(child, nil, 0) }
        // Of a process that has ended, and that nobody has asked about, this folder can be opened and not be read.
        var information = siginfo_t()
        try #require(waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) == 0)
        let path = "/proc/\(child)/net"
        // Other systems do not open it.
        guard let folder = opendir(path) else { return }
        closedir(folder)
        #expect(throws: DiskError(operation: "readdir", path: path, code: EINVAL)) { try listFolder(at: path) }
    }
}
