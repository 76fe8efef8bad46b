import Testing

@testable import zonekeeper

@Suite("The configuration file")
struct ClusterFileTests {
    static let node = #"{"id": 1, "host": "127.0.0.1", "clientPort": 24011, "peerPort": 24111}"#

    /// The error of a file's text; nil if it is a good one.
    private func problem(_ text: String) -> String? {
        do throws(CommandFailure) {
            _ = try ClusterFile(json: Array(text.utf8))
            return nil
        } catch {
            return error.description
        }
    }

    private func file(nodes: String, more: String = "") -> String {
        #"{"name": "dev", "nodes": [\#(nodes)]\#(more)}"#
    }

    @Test("A file says the name, the data folder, what the cluster is made with, and the nodes")
    func complete() throws {
        let text = """
            {"name": "dev", "data": "d", "shards": 4, "replicas": 1,
             "nodes": [{"id": 7, "host": "db.example.com", "clientPort": 1, "peerPort": 2}]}
            """
        let file = try ClusterFile(json: Array(text.utf8))
        #expect(file.name == "dev")
        #expect(file.data == "d")
        #expect(file.shards == 4)
        #expect(file.replicas == 1)
        #expect(file.nodes.map(\.id) == [7])
        #expect(file.nodes.map(\.clientURL) == ["https://db.example.com:1"])
        #expect(file.nodes.map(\.peerAddress) == ["db.example.com:2"])
    }

    @Test("The folder, the shards and the replicas may be left out")
    func defaults() throws {
        let file = try ClusterFile(json: Array(file(nodes: Self.node).utf8))
        #expect(file.data == ".zonekeeper/dev")
        #expect(file.shards == 16)
        #expect(file.replicas == 3)
    }

    @Test("An IPv6 host stands in brackets before its port")
    func addresses() {
        let node = ClusterFile.Node(id: 1, host: "::1", clientPort: 24_011, peerPort: 24_111)
        #expect(node.clientURL == "https://[::1]:24011")
        #expect(node.peerAddress == "[::1]:24111")
    }

    @Test("Text that is cut off is refused with its line and column")
    func truncated() {
        #expect(problem("{\n  \"name\": \"de")?.hasPrefix("line 2, column 14: expected ") == true)
        #expect(problem("")?.hasPrefix("line 1, column 1: ") == true)
    }

    @Test("Every prefix of a good file is refused")
    func everyPrefix() {
        let text = file(nodes: Self.node)
        for length in 0..<text.utf8.count {
            #expect(problem(String(text.prefix(length))) != nil, "\(length) bytes")
        }
        #expect(problem(text) == nil)
    }

    @Test(
        "A wrong value is refused by the name of its key",
        arguments: [
            (#"[]"#, "the file: an object is expected"),
            (#"{"nodes": []}"#, "name: is missing"),
            (#"{"name": 1, "nodes": []}"#, "name: a string is expected, not a number"),
            (#"{"name": "a/b", "nodes": [\#(node)]}"#, "name: 1 to 64 letters"),
            (#"{"name": "dev"}"#, "nodes: is missing"),
            (#"{"name": "dev", "nodes": []}"#, "nodes: 1 to 64 nodes are expected, there are 0"),
            (#"{"name": "dev", "nodes": [1]}"#, "nodes[0]: an object is expected"),
            (#"{"name": "dev", "nodes": [\#(node)], "shards": 0}"#, "shards: a whole number of 1 to 1024"),
            (#"{"name": "dev", "nodes": [\#(node)], "shards": 1.5}"#, "shards: a whole number of 1 to 1024"),
            (#"{"name": "dev", "nodes": [\#(node)], "replicas": 2}"#, "replicas: 2 is even"),
            (#"{"name": "dev", "nodes": [\#(node)], "replica": 1}"#, "replica: is not a key that is known here"),
            (#"{"name": "dev", "nodes": [\#(node), \#(node)]}"#, "nodes[1].id: 1 is the id of nodes[0] too"),
            (
                #"{"name": "dev", "nodes": [{"id": 1, "host": "h", "clientPort": 5, "peerPort": 5}]}"#,
                "nodes[0].peerPort: 5 on h is nodes[0].clientPort too"
            ),
            (
                #"{"name": "dev", "nodes": [{"id": 65536, "host": "h", "clientPort": 5, "peerPort": 6}]}"#,
                "nodes[0].id: a whole number of 1 to 65535 is expected, not 65536"
            ),
            (
                #"{"name": "dev", "nodes": [{"id": 1, "host": "https://h", "clientPort": 5, "peerPort": 6}]}"#,
                "nodes[0].host: a DNS name"
            ),
            (
                #"{"name": "dev", "nodes": [{"id": 1, "host": "0.0.0.0", "clientPort": 5, "peerPort": 6}]}"#,
                "nodes[0].host: '0.0.0.0' is where a node listens"
            ),
            (
                #"{"name": "dev", "nodes": [{"id": 1, "host": "h", "port": 5, "peerPort": 6}]}"#,
                "nodes[0].port: is not a key that is known here"
            ),
        ])
    func refusals(text: String, expected: String) {
        #expect(problem(text)?.hasPrefix(expected) == true, "\(problem(text) ?? "accepted")")
    }

    @Test("The data folder is relative to the file's folder")
    func layout() throws {
        let file = try ClusterFile(json: Array(file(nodes: Self.node, more: #", "data": "../d/./x""#).utf8))
        let layout = ClusterLayout(file: file, path: "/etc/zk/cluster.json")
        #expect(layout.data == "/etc/d/x")
        #expect(layout.folder(of: file.nodes[0]) == "/etc/d/x/node-1")
        #expect(layout.clientAuthority == "/etc/d/x/certs/client-ca.pem")
    }
}
