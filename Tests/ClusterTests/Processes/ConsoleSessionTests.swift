import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites.Shared {
    @Suite("The console over nodes")
    struct ConsoleSessionTests {
        @Test("a link works once over all nodes; a session works on each, and ends on each at once")
        func sessions() async throws {
            let client = try await SharedCluster.tenant().client
            for _ in 0..<5 {
                let link = try await client.admin("POST", "console/links", "{}")["secret"]?.string ?? ""
                let body = Array(#"{"link": "\#(link)"}"#.utf8)
                // All nodes get it at once.
                let answers = try await withThrowingTaskGroup { tasks in
                    for node in 0..<client.nodeCount {
                        tasks.addTask {
                            (node, try await Self.send(client, "POST", "console/sign-in", body, node: node))
                        }
                    }
                    return try await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
                }
                #expect(answers.values.map(\.status).sorted() == [200, 401, 401])
                guard let (first, page) = answers.first(where: { $0.value.status == 200 }) else { return }
                let cookie = page.headers.first { $0.0.lowercased() == "set-cookie" }?.1.split(separator: ";").first
                let session = [
                    ("Cookie", String(try #require(cookie))),
                    ("X-Zonekeeper-CSRF", try JSONParser.parse(page.body)["csrfToken"]?.string ?? ""),
                ]
                for node in 0..<client.nodeCount {
                    let me = try await Self.send(client, "GET", "console/me", nil, node: node, session)
                    #expect(me.status == 200)
                }
                let out = try await Self.send(
                    client, "POST", "console/sign-out", [], node: (first + 1) % client.nodeCount, session)
                #expect(out.status == 200)
                for node in 0..<client.nodeCount {
                    let me = try await Self.send(client, "GET", "console/me", nil, node: node, session)
                    #expect(me.status == 401)
                }
            }
        }

        private static func send(
            _ client: TestClient, _ method: String, _ path: String, _ body: [UInt8]?, node: Int,
            _ headers: [(String, String)] = []
        ) async throws -> (status: Int, headers: [(String, String)], body: [UInt8]) {
            try await client.exchange(
                method, "/admin/1/\(path)", body: body, node: node,
                headers: headers + [("Origin", client.origin(of: node)), ("Sec-Fetch-Site", "same-origin")])
        }
    }
}
