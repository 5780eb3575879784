# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_floatgate_global_optspecs
    string join \n h/help V/version
end

function __fish_floatgate_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_floatgate_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_floatgate_using_subcommand
    set -l cmd (__fish_floatgate_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c floatgate -n "__fish_floatgate_needs_command" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_needs_command" -s V -l version -d 'Print version'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "run" -d 'Simulate a workload on a device and report the results'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "serve" -d 'Serve the SSD as a block device in real time, to fio, QEMU and the kernel'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "ctl" -d 'Query or control a running server: status, speed, trim-all, power-cut, fail'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "top" -d 'Watch a running server in a terminal'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "vm" -d 'Boot a small Linux guest with the SSD as its disk, and run a command in it'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "report" -d 'Write the report of a result again: DIR/report.html from DIR/summary.json'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "compare" -d 'Compare results in a table, and on a page with overlaid distributions'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "explain" -d 'Explain one request\'s latency: what it waited for and what delayed it'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "draw" -d 'Draw a timing diagram of channels, chips and planes as SVG'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "device" -d 'List the built-in devices, show one, or check a device file'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "state" -d 'Inspect and check a saved state of a device'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "trace" -d 'Analyze a trace, fit a synthetic workload to it, or convert it'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "sweep" -d 'Run many devices, workloads and seeds from a file [Python package]'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "optimize" -d 'Search for the best devices, with several objectives [Python package]'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "fleet" -d 'Simulate one device per volume of a trace: wear and lifetime [Python package]'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "design" -d 'Find the channels and chips that an SSD needs for a speed [Python package]'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "study" -d 'Reproduce studies of papers, and compare the results [Python package]'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "completions" -d 'Print a script that completes commands and options in a shell'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "man" -d 'Write man pages for all commands to a directory'
complete -c floatgate -n "__fish_floatgate_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l set -d 'Change a parameter, such as geometry.channels=8 or gc.victim=fifo' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l precondition -d 'Initial state of the device: none, fill, aged=V, invalid=V, steady or a workload' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l prewrite -d 'Before the run, write the data that the workload reads before writing it' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l save-state -d 'Save the preconditioned state of the device to FILE, for --load-state' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l load-state -d 'Load the state of the device from FILE, instead of --precondition' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l seed -d 'Seed of all random numbers' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l seeds -d 'Run with seeds 1 to N, or A to B, and print means with confidence intervals' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l until -d 'Repeat the workload without simulated time until EVENT, and show how the device wears out' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l endurance-scale -d 'Multiply nand.endurance by SCALE, to shorten the lifetime of --until' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l out -d 'Write the result to DIR/summary.json and DIR/report.html' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l requests -d 'Write every request to DIR/requests.parquet or DIR/requests.csv' -r -f -a "parquet\t'Typed, compressed columns; read by DuckDB, pandas, Polars and others'
csv\t'Values separated by commas, in a line per request'"
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l series -d 'Length of the windows of simulated time in DIR/series.parquet, such as 10ms' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l timeline -d 'Write a timeline of channels, planes and requests to DIR/timeline.pftrace.gz' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l format -d 'Trace format, or delimited:COLUMNS for other columns [default: detected]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l columns -d 'Read the columns of format delimited from a TOML file' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l action -d 'Event of blkparse and blktrace traces that counts as a request: D, Q, I or C' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l time-unit -d 'Unit of timestamps: ps, ns, 100ns, us, ms or s [default: that of the format]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l time-scale -d 'Multiply timestamps by X; 0.5 doubles the request rate' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l max-gap -d 'Shorten longer gaps between requests to TIME, such as 1s' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l replay -d 'Pace: timed (as recorded), asap, or depth=N (N outstanding) [default: timed]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l fit -d 'Addresses beyond the device: refuse, wrap or compact [default: refuse]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l devices -d 'Traces of several devices: side-by-side, merge or select=NAME,...' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l limit -d 'End the trace after N requests' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l sort-window -d 'Sort requests that are up to N positions out of timestamp order' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l skip-bad-lines -d 'Skip up to N invalid lines' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l no-attribution -d 'Skip the latency breakdown (up to 20% faster)'
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -l json -d 'Print the result as JSON instead'
complete -c floatgate -n "__fish_floatgate_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l set -d 'Change a parameter, such as geometry.channels=8 or gc.victim=fifo' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l nbd -d 'Address for NBD clients: unix:PATH or HOST:PORT; can be repeated' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l vhost-user -d 'Socket for vhost-user-blk clients, such as QEMU\'s vhost-user-blk-pci' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l vhost-queues -d 'Maximum queues per vhost-user client; QEMU uses one per guest processor' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l allow-remote -d 'Allow listening on this non-loopback IP; clients are not authenticated' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l speed -d 'Run simulated time at X times real time, such as 0.1 on a slow host' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l precondition -d 'Initial state of the device: none, fill, aged=V, invalid=V, steady or a workload' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l image -d 'Keep the contents of flash in FILE, which is created if it does not exist' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l seed -d 'Seed of all random numbers' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l memory -d 'Memory for written data [default: half of the machine\'s memory]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l dashboard -d 'Serve a web page, and metrics for Prometheus, at ADDR: HOST:PORT or PORT' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l dashboard-token -d 'Allow control from the page with TOKEN, of 8 characters or more' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l dashboard-token-file -d 'Read the token from the first line of FILE' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l control -d 'Control socket for `floatgate ctl` and `floatgate top`' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l ready-fd -d 'Write the line READY=1 to file descriptor N when clients are served' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l record -d 'Record each request to FILE, as a trace that `floatgate run` can replay' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l timeline -d 'Write a timeline of channels, planes and requests to FILE, such as live.pftrace.gz' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l timeline-limit -d 'Size of the timeline before compression, at least 1MiB; the newest part is kept' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l out -d 'Write the result to DIR/summary.json and DIR/report.html' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l no-delay -d 'Complete requests as fast as possible instead of in real time'
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l no-spin -d 'Sleep until replies are due instead of busy-waiting (less CPU, less accurate)'
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l image-sync -d 'Sync the image on each flush and FUA write, to survive a host crash (slow)'
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l image-salvage -d 'Serve an image with damaged records that cannot be repaired'
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -l json -d 'Print the result as JSON instead'
complete -c floatgate -n "__fish_floatgate_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "status" -d 'Print the device, its addresses and its current state'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "clients" -d 'Print the commands that connect clients: fio, QEMU and others'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "speed" -d 'Run simulated time at X times real time from now on'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "trim-all" -d 'Trim the whole device; all data is lost'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "power-cut" -d 'Cut the power and recover the device; data not yet in flash is lost'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "fail" -d 'Make the next program, erase or read fail on a device with a table [faults]'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "watch" -d 'Print the state as a line of JSON twice a second, until Ctrl-C'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and not __fish_seen_subcommand_from status clients speed trim-all power-cut fail watch help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from status" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from status" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from clients" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from clients" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from clients" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from speed" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from speed" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from speed" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from trim-all" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from trim-all" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from trim-all" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from power-cut" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from power-cut" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from power-cut" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from fail" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from fail" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from fail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from watch" -l socket -d 'The server\'s control socket or NBD socket [default: the only running server]' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from watch" -l blocks -d 'Also print block maps'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from watch" -l json -d 'Print the response as JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "status" -d 'Print the device, its addresses and its current state'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "clients" -d 'Print the commands that connect clients: fio, QEMU and others'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "speed" -d 'Run simulated time at X times real time from now on'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "trim-all" -d 'Trim the whole device; all data is lost'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "power-cut" -d 'Cut the power and recover the device; data not yet in flash is lost'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "fail" -d 'Make the next program, erase or read fail on a device with a table [faults]'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "watch" -d 'Print the state as a line of JSON twice a second, until Ctrl-C'
complete -c floatgate -n "__fish_floatgate_using_subcommand ctl; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l set -d 'Change a parameter, such as geometry.channels=8 or gc.victim=fifo' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l nbd -d 'Address for NBD clients: unix:PATH or HOST:PORT; can be repeated' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l vhost-user -d 'Socket for vhost-user-blk clients, such as QEMU\'s vhost-user-blk-pci' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l vhost-queues -d 'Maximum queues per vhost-user client; QEMU uses one per guest processor' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l allow-remote -d 'Allow listening on this non-loopback IP; clients are not authenticated' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l speed -d 'Run simulated time at X times real time, such as 0.1 on a slow host' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l precondition -d 'Initial state of the device: none, fill, aged=V, invalid=V, steady or a workload' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l image -d 'Keep the contents of flash in FILE, which is created if it does not exist' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l seed -d 'Seed of all random numbers' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l memory -d 'Memory for written data [default: half of the machine\'s memory]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l dashboard -d 'Serve a web page, and metrics for Prometheus, at ADDR: HOST:PORT or PORT' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l dashboard-token -d 'Allow control from the page with TOKEN, of 8 characters or more' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l dashboard-token-file -d 'Read the token from the first line of FILE' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l control -d 'Control socket for `floatgate ctl` and `floatgate top`' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l ready-fd -d 'Write the line READY=1 to file descriptor N when clients are served' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l record -d 'Record each request to FILE, as a trace that `floatgate run` can replay' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l timeline -d 'Write a timeline of channels, planes and requests to FILE, such as live.pftrace.gz' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l timeline-limit -d 'Size of the timeline before compression, at least 1MiB; the newest part is kept' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l out -d 'Write the result to DIR/summary.json and DIR/report.html' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l run -d 'Run COMMAND in the guest and exit with its status [default: a shell]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l interface -d 'Interface of the disk' -r -f -a "virtio\t'/dev/vda: QEMU\'s virtio-blk, as an NBD client of the server'
nvme\t'/dev/nvme0n1: QEMU\'s NVMe controller, as an NBD client of the server'
ide\t'/dev/sda: QEMU\'s IDE disk, with one request at a time'
vhost-user\t'/dev/vda: virtio-blk, served directly through shared memory'
nbd\t'/dev/nbd0: the guest kernel\'s NBD client, over QEMU\'s network'"
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l package -d 'Install this Debian package and its dependencies in the guest; can be repeated' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l copy -d 'Copy a file to the guest\'s /root, where the command starts; can be repeated' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l accel -d 'Processor of the guest' -r -f -a "auto\t'KVM if it boots the kernel (tested once), otherwise emulation'
kvm\t'Hardware virtualization'
tcg\t'Emulation by QEMU: for functional tests, not for measurements'"
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l guest-memory -d 'Memory of the guest' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l cpus -d 'Number of processors of the guest' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l kernel -d 'Boot this kernel with --initrd, without downloading packages' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l initrd -d 'Boot with this initial file system' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l no-delay -d 'Complete requests as fast as possible instead of in real time'
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l no-spin -d 'Sleep until replies are due instead of busy-waiting (less CPU, less accurate)'
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l image-sync -d 'Sync the image on each flush and FUA write, to survive a host crash (slow)'
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l image-salvage -d 'Serve an image with damaged records that cannot be repaired'
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -l json -d 'Print the result as JSON instead'
complete -c floatgate -n "__fish_floatgate_using_subcommand vm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand report" -l out -d 'Write the report to FILE instead of DIR/report.html' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand report" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand compare" -l out -d 'Write a page with the table and the overlaid distributions to FILE.html' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand compare" -l json -d 'Print the comparison as JSON instead'
complete -c floatgate -n "__fish_floatgate_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand explain" -l json -d 'Print the explanation as JSON instead'
complete -c floatgate -n "__fish_floatgate_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand draw" -l out -d 'Write the diagram to FILE instead of DIR/timeline.svg' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand draw" -l title -d 'Title of the diagram [default: the device and the span]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand draw" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and not __fish_seen_subcommand_from list show check schema help" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and not __fish_seen_subcommand_from list show check schema help" -f -a "list" -d 'List the built-in devices'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and not __fish_seen_subcommand_from list show check schema help" -f -a "show" -d 'Show the parameters of a device, their sources, and values derived from them'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and not __fish_seen_subcommand_from list show check schema help" -f -a "check" -d 'Check a device file'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and not __fish_seen_subcommand_from list show check schema help" -f -a "schema" -d 'Print the JSON schema of device files, for completion in editors'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and not __fish_seen_subcommand_from list show check schema help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from list" -l json -d 'Print JSON, as docs/reference/devices.md describes it'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from show" -l set -d 'Change a parameter, such as geometry.channels=8 or gc.victim=fifo' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from show" -l toml -d 'Print a device file'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from check" -l set -d 'Change a parameter, such as geometry.channels=8 or gc.victim=fifo' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the built-in devices'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the parameters of a device, their sources, and values derived from them'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check a device file'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON schema of device files, for completion in editors'
complete -c floatgate -n "__fish_floatgate_using_subcommand device; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and not __fish_seen_subcommand_from info help" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and not __fish_seen_subcommand_from info help" -f -a "info" -d 'Check a saved state, and show its device, origin, options and sections'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and not __fish_seen_subcommand_from info help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and __fish_seen_subcommand_from info" -l json -d 'Print JSON instead'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and __fish_seen_subcommand_from help" -f -a "info" -d 'Check a saved state, and show its device, origin, options and sections'
complete -c floatgate -n "__fish_floatgate_using_subcommand state; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and not __fish_seen_subcommand_from info synth convert help" -s h -l help -d 'Print help'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and not __fish_seen_subcommand_from info synth convert help" -f -a "info" -d 'Analyze a trace, and warn of implausible values'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and not __fish_seen_subcommand_from info synth convert help" -f -a "synth" -d 'Fit a synthetic workload to a trace, and print how well it fits'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and not __fish_seen_subcommand_from info synth convert help" -f -a "convert" -d 'Write a trace in another format'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and not __fish_seen_subcommand_from info synth convert help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l format -d 'Trace format, or delimited:COLUMNS for other columns [default: detected]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l columns -d 'Read the columns of format delimited from a TOML file' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l action -d 'Event of blkparse and blktrace traces that counts as a request: D, Q, I or C' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l time-unit -d 'Unit of timestamps: ps, ns, 100ns, us, ms or s [default: that of the format]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l time-scale -d 'Multiply timestamps by X; 0.5 doubles the request rate' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l max-gap -d 'Shorten longer gaps between requests to TIME, such as 1s' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l replay -d 'Pace: timed (as recorded), asap, or depth=N (N outstanding) [default: timed]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l fit -d 'Addresses beyond the device: refuse, wrap or compact [default: refuse]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l devices -d 'Traces of several devices: side-by-side, merge or select=NAME,...' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l limit -d 'End the trace after N requests' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l sort-window -d 'Sort requests that are up to N positions out of timestamp order' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l skip-bad-lines -d 'Skip up to N invalid lines' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -l json -d 'Print JSON instead: an object for one file, a list for several'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l moments -d 'Fit moments, or a known workload, instead of a trace' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -s o -l out -d 'Write the workload to FILE: a model (.json), or a fio job (.fio)' -r -F
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l requests -d 'Generate N requests instead of as many as the trace has' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l scale-rate -d 'Multiply the request rate by X' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l scale-footprint -d 'Multiply the footprint by X' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l seed -d 'Seed of the requests that are generated for the comparison' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l format -d 'Trace format, or delimited:COLUMNS for other columns [default: detected]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l columns -d 'Read the columns of format delimited from a TOML file' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l action -d 'Event of blkparse and blktrace traces that counts as a request: D, Q, I or C' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l time-unit -d 'Unit of timestamps: ps, ns, 100ns, us, ms or s [default: that of the format]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l time-scale -d 'Multiply timestamps by X; 0.5 doubles the request rate' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l max-gap -d 'Shorten longer gaps between requests to TIME, such as 1s' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l replay -d 'Pace: timed (as recorded), asap, or depth=N (N outstanding) [default: timed]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l fit -d 'Addresses beyond the device: refuse, wrap or compact [default: refuse]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l devices -d 'Traces of several devices: side-by-side, merge or select=NAME,...' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l limit -d 'End the trace after N requests' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l sort-window -d 'Sort requests that are up to N positions out of timestamp order' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l skip-bad-lines -d 'Skip up to N invalid lines' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -l json -d 'Print the comparison as JSON instead: a list of moments'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from synth" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l to -d 'Format to write' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l format -d 'Trace format, or delimited:COLUMNS for other columns [default: detected]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l columns -d 'Read the columns of format delimited from a TOML file' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l action -d 'Event of blkparse and blktrace traces that counts as a request: D, Q, I or C' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l time-unit -d 'Unit of timestamps: ps, ns, 100ns, us, ms or s [default: that of the format]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l time-scale -d 'Multiply timestamps by X; 0.5 doubles the request rate' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l max-gap -d 'Shorten longer gaps between requests to TIME, such as 1s' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l replay -d 'Pace: timed (as recorded), asap, or depth=N (N outstanding) [default: timed]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l fit -d 'Addresses beyond the device: refuse, wrap or compact [default: refuse]' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l devices -d 'Traces of several devices: side-by-side, merge or select=NAME,...' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l limit -d 'End the trace after N requests' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l sort-window -d 'Sort requests that are up to N positions out of timestamp order' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -l skip-bad-lines -d 'Skip up to N invalid lines' -r
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from convert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "info" -d 'Analyze a trace, and warn of implausible values'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "synth" -d 'Fit a synthetic workload to a trace, and print how well it fits'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "convert" -d 'Write a trace in another format'
complete -c floatgate -n "__fish_floatgate_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "run" -d 'Simulate a workload on a device and report the results'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "serve" -d 'Serve the SSD as a block device in real time, to fio, QEMU and the kernel'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "ctl" -d 'Query or control a running server: status, speed, trim-all, power-cut, fail'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "top" -d 'Watch a running server in a terminal'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "vm" -d 'Boot a small Linux guest with the SSD as its disk, and run a command in it'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "report" -d 'Write the report of a result again: DIR/report.html from DIR/summary.json'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "compare" -d 'Compare results in a table, and on a page with overlaid distributions'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "explain" -d 'Explain one request\'s latency: what it waited for and what delayed it'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "draw" -d 'Draw a timing diagram of channels, chips and planes as SVG'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "device" -d 'List the built-in devices, show one, or check a device file'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "state" -d 'Inspect and check a saved state of a device'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "trace" -d 'Analyze a trace, fit a synthetic workload to it, or convert it'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "sweep" -d 'Run many devices, workloads and seeds from a file [Python package]'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "optimize" -d 'Search for the best devices, with several objectives [Python package]'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "fleet" -d 'Simulate one device per volume of a trace: wear and lifetime [Python package]'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "design" -d 'Find the channels and chips that an SSD needs for a speed [Python package]'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "study" -d 'Reproduce studies of papers, and compare the results [Python package]'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "completions" -d 'Print a script that completes commands and options in a shell'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "man" -d 'Write man pages for all commands to a directory'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and not __fish_seen_subcommand_from run serve ctl top vm report compare explain draw device state trace sweep optimize fleet design study completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "status" -d 'Print the device, its addresses and its current state'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "clients" -d 'Print the commands that connect clients: fio, QEMU and others'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "speed" -d 'Run simulated time at X times real time from now on'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "trim-all" -d 'Trim the whole device; all data is lost'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "power-cut" -d 'Cut the power and recover the device; data not yet in flash is lost'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "fail" -d 'Make the next program, erase or read fail on a device with a table [faults]'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from ctl" -f -a "watch" -d 'Print the state as a line of JSON twice a second, until Ctrl-C'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from device" -f -a "list" -d 'List the built-in devices'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from device" -f -a "show" -d 'Show the parameters of a device, their sources, and values derived from them'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from device" -f -a "check" -d 'Check a device file'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from device" -f -a "schema" -d 'Print the JSON schema of device files, for completion in editors'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from state" -f -a "info" -d 'Check a saved state, and show its device, origin, options and sections'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "info" -d 'Analyze a trace, and warn of implausible values'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "synth" -d 'Fit a synthetic workload to a trace, and print how well it fits'
complete -c floatgate -n "__fish_floatgate_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "convert" -d 'Write a trace in another format'
