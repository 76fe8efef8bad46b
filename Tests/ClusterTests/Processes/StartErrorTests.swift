import Foundation
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite("A node that cannot start says why, and ends")
    struct StartErrorTests {
        private let folder = NSTemporaryDirectory() + "zonekeeper-start-\(UUID().uuidString)"

        init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

        /// Runs `serve` and expects it to end with an error that contains the text, on one line.
        private func expectFailure(_ arguments: [String], _ text: String) throws {
            let ended = try ServerProcess.run(["serve"] + arguments)
            let errors = ended.errors
            #expect(ended.status == 1, "\(errors)")
            let lines = errors.split(separator: "\n").filter { $0.hasPrefix("error:") }
            #expect(lines.count == 1 && lines[0].contains(text), "\(errors)")
            try? FileManager.default.removeItem(atPath: folder)
        }

        @Test("a truncated configuration")
        func truncatedConfiguration() throws {
            let path = folder + "/cluster.json"
            try #"{"name": "x", "nodes": [{"id": 1,"#.write(toFile: path, atomically: true, encoding: .utf8)
            try expectFailure(["--config", path, "--node", "1"], "cluster.json")
        }

        @Test("a port in use")
        func portInUse() throws {
            let ports = try FreePorts.take(2)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(ports[0]).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    #expect(bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0)
                }
            }
            #expect(listen(descriptor, 1) == 0)
            try expectFailure(
                ["--data", folder + "/data", "--port", "\(ports[0])", "--peer-port", "\(ports[1])"], "\(ports[0])")
        }

        @Test("it gets further than its databases where the shell lets it open few files, and the system more")
        func fewOpenFiles() throws {
            let (ports, none) = (try FreePorts.take(2), folder + "/none.pem")
            let arguments = [
                "serve", "--data", folder + "/data", "--port", "\(ports[0])", "--peer-port", "\(ports[1])",
                "--client-certificate", none, "--client-key", none,
            ]
            let ended = try FinishedProgram(
                ["sh", "-c", "ulimit -S -n 96; exec \"$0\" \"$@\"", ServerProcess.binary.path] + arguments)
            #expect(ended.errors.contains("the client certificate \(none)"), "\(ended.text)")
            try? FileManager.default.removeItem(atPath: folder)
        }

        @Test("a data folder that cannot be written")
        func unwritableFolder() throws {
            let file = folder + "/file"
            try "".write(toFile: file, atomically: true, encoding: .utf8)
            try expectFailure(["--data", file + "/data"], file)
        }
    }
}
