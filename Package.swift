// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

extension Target.Dependency {
    static let nioCore: Self = .product(name: "NIOCore", package: "swift-nio")
    static let nioPosix: Self = .product(name: "NIOPosix", package: "swift-nio")
    static let nioSSL: Self = .product(name: "NIOSSL", package: "swift-nio-ssl")
    static let nioHTTP1: Self = .product(name: "NIOHTTP1", package: "swift-nio")
    static let grdb: Self = .product(name: "GRDB", package: "GRDB.swift")
    static let grdbSQLite: Self = .product(name: "GRDBSQLite", package: "GRDB.swift")
    static let crypto: Self = .product(name: "Crypto", package: "swift-crypto")
    static let cryptoExtras: Self = .product(name: "CryptoExtras", package: "swift-crypto")
    static let jwt: Self = .product(name: "JWTKit", package: "jwt-kit")
    static let x509: Self = .product(name: "X509", package: "swift-certificates")
    static let asn1: Self = .product(name: "SwiftASN1", package: "swift-asn1")
    static let metrics: Self = .product(name: "CoreMetrics", package: "swift-metrics")
    static let tracing: Self = .product(name: "Tracing", package: "swift-distributed-tracing")
    static let logging: Self = .product(name: "Logging", package: "swift-log")
    static let deque: Self = .product(name: "DequeModule", package: "swift-collections")
    static let heap: Self = .product(name: "HeapModule", package: "swift-collections")
    static let hummingbird: Self = .product(name: "Hummingbird", package: "hummingbird")
    static let hummingbirdCore: Self = .product(name: "HummingbirdCore", package: "hummingbird")
    static let nioHTTPTypes: Self = .product(name: "NIOHTTPTypes", package: "swift-nio-extras")
    static let nioHTTPTypesHTTP2: Self = .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras")
    static let nioHTTP2: Self = .product(name: "NIOHTTP2", package: "swift-nio-http2")
    static let nioTLS: Self = .product(name: "NIOTLS", package: "swift-nio")
    static let httpTypes: Self = .product(name: "HTTPTypes", package: "swift-http-types")
    static let lifecycle: Self = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
    static let unixSignals: Self = .product(name: "UnixSignals", package: "swift-service-lifecycle")
    static let arguments: Self = .product(name: "ArgumentParser", package: "swift-argument-parser")
    static let asyncHTTPClient: Self = .product(name: "AsyncHTTPClient", package: "async-http-client")
    static let histogram: Self = .product(name: "Histogram", package: "hdrhistogram-swift")
}

/// Folders of targets that are targets of their own, in C.
let excluded = ["CloudKit": ["AtLoad"], "WebServices": ["OpenAPI"]]

/// A target of ours with its tests: `Sources/<name>` and `Tests/<name>Tests`.
func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], testing: [Target.Dependency] = [], isTested: Bool = true
) -> [Target] {
    var targets: [Target] = [
        .target(
            name: name, dependencies: dependencies, exclude: ["DESIGN.md"] + (excluded[name] ?? []),
            swiftSettings: settings)
    ]
    if isTested {
        targets.append(
            .testTarget(
                name: name + "Tests", dependencies: [.byName(name: name)] + dependencies + testing,
                exclude: name == "RaftCore" ? ["Scenarios"] : [], swiftSettings: settings))
    }
    return targets
}

let package = Package(
    name: "zonekeeper",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "zonekeeper", targets: ["zonekeeper"]),
        .library(name: "CloudKit", targets: ["CloudKit", "CoreLocation", "OSLog", "UbiquitousKeyValueStore"]),
        .library(name: "RaftCore", targets: ["RaftCore"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
        .package(url: "https://github.com/apple/swift-asn1", .upToNextMinor(from: "1.7.4")),
        .package(url: "https://github.com/apple/swift-certificates", .upToNextMinor(from: "1.21.1")),
        .package(url: "https://github.com/apple/swift-collections", .upToNextMinor(from: "1.6.0")),
        .package(url: "https://github.com/apple/swift-crypto", .upToNextMinor(from: "4.5.2")),
        .package(url: "https://github.com/apple/swift-distributed-tracing", .upToNextMinor(from: "1.7.3")),
        .package(url: "https://github.com/apple/swift-http-types", .upToNextMinor(from: "1.8.0")),
        .package(url: "https://github.com/apple/swift-log", .upToNextMinor(from: "1.16.2")),
        .package(url: "https://github.com/apple/swift-metrics", .upToNextMinor(from: "2.13.0")),
        .package(url: "https://github.com/apple/swift-nio", .upToNextMinor(from: "2.101.2")),
        .package(url: "https://github.com/apple/swift-nio-extras", .upToNextMinor(from: "1.35.2")),
        .package(url: "https://github.com/apple/swift-nio-http2", .upToNextMinor(from: "1.46.0")),
        .package(url: "https://github.com/apple/swift-nio-ssl", .upToNextMinor(from: "2.37.6")),
        .package(url: "https://github.com/groue/GRDB.swift", .upToNextMinor(from: "7.10.0")),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", .upToNextMinor(from: "0.2.0")),
        .package(url: "https://github.com/hummingbird-project/hummingbird", .upToNextMinor(from: "2.28.1")),
        .package(url: "https://github.com/swift-server/async-http-client", .upToNextMinor(from: "1.37.0")),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", .upToNextMinor(from: "2.13.0")),
        .package(url: "https://github.com/vapor/jwt-kit", .upToNextMinor(from: "5.7.1")),
    ],
    targets: [
        module("Wire"),
        module("RaftCore", ["Wire"], testing: ["EventQueue"]),
        module("RecordModel", ["Wire"], testing: ["RaftCore"]),
        module("Authorization", ["RecordModel", "Wire"]),
        module("Telemetry", [.metrics, .tracing]),
        module("Storage", ["RaftCore", "Telemetry", "Wire", .grdb, .grdbSQLite], testing: ["TestSupport"]),
        module("Certificates", [.x509, .asn1, .crypto], testing: ["TestSupport"]),
        module(
            "PeerTransport", ["RaftCore", "Wire", .nioCore, .nioPosix, .nioSSL, .logging],
            testing: ["Certificates", "TestSupport"]),
        module(
            "RecordStore", ["Authorization", "RecordModel", "Wire", .grdb, .grdbSQLite],
            testing: ["RaftCore", "Storage"]),
        module("KeyValueStore", ["RecordModel", "Wire", .grdb], testing: ["RaftCore"]),
        module("Directory", ["RecordModel", "Wire", .grdb, .crypto], testing: ["RaftCore"]),
        module(
            "Cluster",
            [
                "Authorization", "Directory", "KeyValueStore", "PeerTransport", "RaftCore", "RecordModel",
                "RecordStore",
                "Storage", "Telemetry", "Wire", .crypto, .deque, .grdb, .heap, .logging, .nioCore, .nioPosix, .tracing,
            ],
            testing: [
                "Certificates", "HistoryChecks", "Service", "ServiceClient", "TestSupport", "UbiquitousKeyValueStore",
                "WebServices", "zonekeeper", .asyncHTTPClient, .httpTypes, .hummingbird,
                .hummingbirdCore,
                .lifecycle, .nioHTTP1, .nioHTTP2, .nioSSL, .nioTLS,
            ]),
        module(
            "Admission", ["Authorization", "Directory", "RecordModel", "Wire", .crypto, .cryptoExtras, .jwt],
            testing: ["RaftCore"]),
        module(
            "Service",
            [
                "Admission", "Authorization", "Cluster", "Directory", "KeyValueStore", "PeerTransport", "RaftCore",
                "RecordModel", "RecordStore", "Storage", "Telemetry", "Wire", .crypto, .deque, .logging,
                .nioCore, .tracing,
            ], testing: ["TestSupport", .nioPosix]),
        module(
            "WebServices",
            [
                "Admission", "Authorization", "ConsoleFiles", "Directory", "KeyValueStore", "OpenAPIFile",
                "PeerTransport", "RecordModel", "RecordStore", "Service", "Telemetry", "Wire", .asyncHTTPClient,
                .crypto, .httpTypes,
                .hummingbird, .hummingbirdCore, .lifecycle,
                .logging, .metrics, .nioCore, .nioHTTP1, .nioHTTP2, .nioHTTPTypes, .nioHTTPTypesHTTP2, .nioPosix,
                .nioSSL, .nioTLS, .tracing,
            ], testing: ["Certificates", "TestSupport"]),
        module(
            "ServiceClient",
            ["RecordModel", "Wire", .asyncHTTPClient, .crypto, .nioCore, .nioHTTP1, .nioPosix, .nioSSL],
            testing: ["TestSupport"]),
        module(
            "UbiquitousKeyValueStore", ["RecordModel", "ServiceClient", "Wire"], testing: ["RaftCore", "TestSupport"]),
        module(
            "CloudKit",
            ["CloudKitAtLoad", "CoreLocation", "RecordModel", "ServiceClient", "UbiquitousKeyValueStore", "Wire"],
            testing: ["TestSupport", "OSLog", "RaftCore", .asyncHTTPClient, .logging, .nioCore, .nioHTTP1, .nioPosix]),
        [
            // SwiftPM's `embedInCode` compiles an array literal instead, which takes half a minute for this document.
            .target(name: "OpenAPIFile", path: "Sources/WebServices/OpenAPI", exclude: ["openapi.json"]),
            .target(name: "CloudKitAtLoad", path: "Sources/CloudKit/AtLoad"),
            .target(name: "ConsoleFiles", exclude: ["DESIGN.md", "Web"], linkerSettings: [.linkedLibrary("z")]),
            .target(name: "CoreLocation", exclude: ["DESIGN.md"], swiftSettings: settings),
            .target(name: "OSLog", dependencies: [.logging], exclude: ["DESIGN.md"], swiftSettings: settings),
            .executableTarget(
                name: "seed-apps",
                dependencies: [
                    "CloudKit", "CoreLocation", "OSLog", .arguments, .asyncHTTPClient, .nioCore, .nioHTTP1,
                    .nioSSL,
                ],
                path: "Tests/SeedApps", exclude: ["README.md"], resources: [.copy("Schemas")],
                // Code written for Apple's systems, as it is: Swift 5, and `import os` where they have their Logger.
                swiftSettings: [.swiftLanguageMode(.v5), .unsafeFlags(["-module-alias", "os=OSLog"])]),
            .executableTarget(
                name: "zonekeeper",
                dependencies: [
                    "Admission", "Certificates", "Cluster", "Directory", "PeerTransport", "RecordModel",
                    "Service", "ServiceClient",
                    "Storage", "Telemetry", "WebServices",
                    .arguments, .asyncHTTPClient, .crypto, .grdb, .heap, .histogram, .lifecycle, .logging, .metrics,
                    .nioCore,
                    .nioHTTP1, .nioPosix, .nioSSL, .nioTLS, .unixSignals,
                ],
                swiftSettings: settings),
            .testTarget(
                name: "zonekeeperTests",
                dependencies: [
                    "zonekeeper", "Directory", "KeyValueStore", "RecordModel", "RecordStore", "ServiceClient",
                    "Storage",
                    "TestSupport", .arguments, .asyncHTTPClient, .crypto,
                    .nioCore, .nioHTTP1, .nioPosix,
                ],
                swiftSettings: settings),
            .target(
                name: "TestSupport",
                dependencies: [
                    "Admission", "Certificates", "Cluster", "Directory", "PeerTransport", "RaftCore", "RecordModel",
                    "Service", "Telemetry", "WebServices", "Wire", "zonekeeper", .asyncHTTPClient, .crypto, .grdbSQLite,
                    .httpTypes,
                    .hummingbird, .hummingbirdCore,
                    .logging, .nioCore, .nioHTTP1, .nioPosix, .nioSSL,
                ], path: "Tests/TestSupport", swiftSettings: settings),
            .target(name: "EventQueue", dependencies: [.heap], path: "Tests/EventQueue", swiftSettings: settings),
            .target(name: "HistoryChecks", path: "Tests/HistoryChecks", swiftSettings: settings),
            .testTarget(
                name: "HistoryChecksTests", dependencies: ["HistoryChecks", "RaftCore"], swiftSettings: settings),
            .target(
                name: "Simulation",
                dependencies: [
                    "Admission", "Authorization", "Cluster", "Directory", "EventQueue", "HistoryChecks",
                    "KeyValueStore", "PeerTransport",
                    "RaftCore", "RecordModel", "RecordStore", "Service", "Storage", "Wire", .crypto, .deque, .grdb,
                    .logging, .nioCore,
                ], path: "Tests/Simulation", swiftSettings: settings),
            .executableTarget(
                name: "simulate", dependencies: ["Simulation", .arguments], path: "Tests/Simulator",
                swiftSettings: settings),
            .testTarget(
                name: "SimulationTests",
                dependencies: ["HistoryChecks", "RaftCore", "Simulation", "Storage", .grdb], swiftSettings: settings),
            .testTarget(
                name: "ConformanceTests",
                dependencies: [
                    "RaftCore", "RecordModel", "Service", "TestSupport", "WebServices", .asyncHTTPClient, .crypto,
                    .nioCore,
                ],
                swiftSettings: settings),
            .testTarget(
                name: "FuzzTests", dependencies: ["RaftCore", "RecordModel", "RecordStore", "Wire"],
                swiftSettings: settings),
            // Depends on the programs that no other tests need, so that one build makes everything.
            .testTarget(
                name: "LintTests",
                dependencies: ["TestSupport", "sdk-benchmarks", "seed-apps", "simulate", "store-benchmarks"],
                exclude: ["Lists"], swiftSettings: settings),
            .executableTarget(
                name: "sdk-benchmarks",
                dependencies: ["CloudKit", .arguments, .asyncHTTPClient, .nioCore, .nioHTTP1, .nioSSL],
                path: "Benchmarks/SDK", swiftSettings: settings),
            .executableTarget(
                name: "store-benchmarks",
                dependencies: [
                    "Authorization", "Cluster", "Directory", "RecordModel", "RecordStore", "Storage", "Wire",
                    .arguments,
                    .grdb, .grdbSQLite,
                ],
                path: "Benchmarks/Store", swiftSettings: settings),
        ],
    ].flatMap(\.self)
)

// For packages that depend on this one by its URL, which SwiftPM checks out, and where the environment says so. Not in
// a build of this package: `--explicit-target-dependency-import-check` takes the `import os` of swift-argument-parser,
// which stands behind `canImport`, for an import of this target. See Sources/os/DESIGN.md.
if Context.packageDirectory.contains("/checkouts/") || Context.environment["ZONEKEEPER_OS_MODULE"] != nil {
    package.products.append(.library(name: "os", targets: ["os"]))
    package.targets += [
        .target(name: "CosModule", path: "Sources/os/Submodule"),
        .target(
            name: "os", dependencies: ["CosModule", "OSLog"], exclude: ["DESIGN.md", "Submodule"],
            swiftSettings: settings),
    ]
}
