# Commands of docs/validation.md. Written by `make validate`: changes made here are lost.

## Agrawal et al. 2008, Table 3

# Sequential read
floatgate run agrawal2008 --set geometry.blocks=64 --set gc.soft_threshold=3 --set gc.hard_threshold=3 'rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=0k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=4k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=8k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=12k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=16k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=20k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=24k ;
    rw=read bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=28k'

# Random read
floatgate run agrawal2008 'rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=0k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=4k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=8k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=12k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=16k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=20k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=24k ;
    rw=randread bs=4k number_ios=20000 zonesize=4k zoneskip=28k offset=28k'

# Sequential write, without summaries
floatgate run agrawal2008 --set geometry.blocks=64 --set gc.soft_threshold=3 --set gc.hard_threshold=3 --set mapping.block_summary=none --precondition none 'rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=0k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=4k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=8k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=12k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=16k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=20k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=24k ;
    rw=write bs=4k number_ios=2000 zonesize=4k zoneskip=28k offset=28k'

# Sequential write
floatgate run agrawal2008 --precondition none 'rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=0k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=4k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=8k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=12k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=16k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=20k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=24k ;
    rw=write bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=28k'

# Random write
floatgate run agrawal2008 --precondition none 'rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=0k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=4k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=8k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=12k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=16k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=20k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=24k ;
    rw=randwrite bs=4k number_ios=50400 zonesize=4k zoneskip=28k offset=28k'

# Sequential write with garbage collection
floatgate run agrawal2008 'rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=0k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=4k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=8k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=12k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=16k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=20k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=24k ramp_time=40s ;
    rw=write bs=4k number_ios=504000 zonesize=4k zoneskip=28k offset=28k ramp_time=40s'

## Hu et al. 2011 and 2013

# Unloaded read
floatgate run hu2011 --set geometry.blocks=64 --precondition 'rw=write bs=64k size=8m' 'rw=randread bs=2k size=8m number_ios=1000'

# Unloaded write
floatgate run hu2011 --set geometry.blocks=64 --precondition none 'rw=randwrite bs=2k number_ios=1000'

# Reads of one chip
floatgate run validation/devices/one-channel.toml 'rw=read bs=2k iodepth=4 number_ios=20000 ramp_time=10ms'

# Two-plane writes to two dies
floatgate run validation/devices/one-channel.toml --set geometry.dies=2 --set geometry.planes=2 --set nand.advanced.multi_plane_program=wise --set nand.advanced.strict=true --set allocation.static.order=plane-die-chip-channel --precondition none 'rw=write bs=4k iodepth=8 number_ios=20000 ramp_time=10ms'

# Reads of two chips
floatgate run validation/devices/one-channel.toml --set geometry.chips=2 'rw=read bs=2k iodepth=8 number_ios=20000 ramp_time=10ms'

# Writes to four chips
floatgate run validation/devices/one-channel.toml --set geometry.chips=4 --precondition none 'rw=write bs=2k iodepth=32 number_ios=40000 ramp_time=20ms'

# Writes to five chips
floatgate run validation/devices/one-channel.toml --set geometry.chips=5 --precondition none 'rw=write bs=2k iodepth=40 number_ios=40000 ramp_time=20ms'

# Writes to two dies of two chips, 30 ns
floatgate run validation/devices/one-channel.toml --set geometry.chips=2 --set geometry.dies=2 --set geometry.spare_size=0B --set bus.protocol.sdr=30ns --precondition none 'rw=write bs=2k iodepth=32 number_ios=40000 ramp_time=20ms'

## Yoo et al. 2013 (VSSIM), Section IV-B

# Sequential write, 900 us
floatgate run x25m --set geometry.blocks=128 --set capacity.spare=0.07 --precondition none 'rw=write bs=128k iodepth=1 number_ios=1600'

# Sequential write, 1100 us
floatgate run x25m --set nand.program=1100us --precondition none 'rw=write bs=128k iodepth=1 number_ios=4000'

# Sequential read
floatgate run x25m --set nand.program=1100us --precondition 'rw=write bs=128k size=512m' 'rw=read bs=128k size=512m iodepth=1 number_ios=4000'

# Random read
floatgate run x25m --set nand.program=1100us --precondition 'rw=write bs=128k size=512m' 'rw=randread bs=4k size=512m iodepth=1 number_ios=10000'

# Random write
floatgate run x25m --set nand.program=1100us --precondition 'rw=write bs=128k size=512m' 'rw=randwrite bs=4k size=512m iodepth=1 number_ios=10000'

## Write amplification: closed forms

# Greedy, spare 0.07
floatgate run validation/devices/one-plane.toml --set capacity.logical=248303616B --set gc.victim=greedy --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Greedy, spare 0.10
floatgate run validation/devices/one-plane.toml --set capacity.logical=240295936B --set gc.victim=greedy --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Greedy, spare 0.20
floatgate run validation/devices/one-plane.toml --set capacity.logical=213594112B --set gc.victim=greedy --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Greedy, spare 0.28
floatgate run validation/devices/one-plane.toml --set capacity.logical=192233472B --set gc.victim=greedy --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Ten choices, spare 0.07
floatgate run validation/devices/one-plane.toml --set capacity.logical=248303616B --set 'gc.victim={ d-choices = { d = 10 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Ten choices, spare 0.10
floatgate run validation/devices/one-plane.toml --set capacity.logical=240295936B --set 'gc.victim={ d-choices = { d = 10 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Ten choices, spare 0.20
floatgate run validation/devices/one-plane.toml --set capacity.logical=213594112B --set 'gc.victim={ d-choices = { d = 10 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Ten choices, spare 0.28
floatgate run validation/devices/one-plane.toml --set capacity.logical=192233472B --set 'gc.victim={ d-choices = { d = 10 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Two choices, spare 0.07
floatgate run validation/devices/one-plane.toml --set capacity.logical=248303616B --set 'gc.victim={ d-choices = { d = 2 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Two choices, spare 0.10
floatgate run validation/devices/one-plane.toml --set capacity.logical=240295936B --set 'gc.victim={ d-choices = { d = 2 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Two choices, spare 0.20
floatgate run validation/devices/one-plane.toml --set capacity.logical=213594112B --set 'gc.victim={ d-choices = { d = 2 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Two choices, spare 0.28
floatgate run validation/devices/one-plane.toml --set capacity.logical=192233472B --set 'gc.victim={ d-choices = { d = 2 } }' --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# FIFO, spare 0.07
floatgate run validation/devices/one-plane.toml --set capacity.logical=248303616B --set gc.victim=fifo --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# FIFO, spare 0.10
floatgate run validation/devices/one-plane.toml --set capacity.logical=240295936B --set gc.victim=fifo --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# FIFO, spare 0.20
floatgate run validation/devices/one-plane.toml --set capacity.logical=213594112B --set gc.victim=fifo --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# FIFO, spare 0.28
floatgate run validation/devices/one-plane.toml --set capacity.logical=192233472B --set gc.victim=fifo --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Random victim, spare 0.07
floatgate run validation/devices/one-plane.toml --set capacity.logical=248303616B --set gc.victim=random --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Random victim, spare 0.10
floatgate run validation/devices/one-plane.toml --set capacity.logical=240295936B --set gc.victim=random --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Random victim, spare 0.20
floatgate run validation/devices/one-plane.toml --set capacity.logical=213594112B --set gc.victim=random --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

# Random victim, spare 0.28
floatgate run validation/devices/one-plane.toml --set capacity.logical=192233472B --set gc.victim=random --precondition 'rw=randwrite norandommap=1 bs=4k io_size=1000%' 'rw=randwrite norandommap=1 bs=4k io_size=800% iodepth=4'

## Queues at channels and chips: an event-driven reference, and M/D/1

# Random reads, 1 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randread norandommap=1 bs=4k iodepth=1 number_ios=100000'

# Random reads, 4 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randread norandommap=1 bs=4k iodepth=4 number_ios=100000'

# Random reads, 8 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randread norandommap=1 bs=4k iodepth=8 number_ios=100000'

# Random reads, 32 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randread norandommap=1 bs=4k iodepth=32 number_ios=100000'

# Random writes, 1 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randwrite norandommap=1 bs=4k iodepth=1 number_ios=100000'

# Random writes, 4 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randwrite norandommap=1 bs=4k iodepth=4 number_ios=100000'

# Random writes, 8 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randwrite norandommap=1 bs=4k iodepth=8 number_ios=100000'

# Random writes, 32 outstanding
floatgate run validation/devices/four-chips.toml 'rw=randwrite norandommap=1 bs=4k iodepth=32 number_ios=100000'

# Sequential reads, 4 outstanding
floatgate run validation/devices/four-chips.toml 'rw=read bs=4k iodepth=4 number_ios=20000'

# Sequential reads, 32 outstanding
floatgate run validation/devices/four-chips.toml 'rw=read bs=4k iodepth=32 number_ios=20000'

# Sequential writes, 4 outstanding
floatgate run validation/devices/four-chips.toml 'rw=write bs=4k iodepth=4 number_ios=20000'

# Sequential writes, 32 outstanding
floatgate run validation/devices/four-chips.toml 'rw=write bs=4k iodepth=32 number_ios=20000'

# 70 % random reads, 4 outstanding, fcfs
floatgate run validation/devices/four-chips.toml --set scheduler=fcfs 'rw=randrw rwmixread=70 norandommap=1 bs=4k iodepth=4 number_ios=450000'

# 70 % random reads, 32 outstanding, fcfs
floatgate run validation/devices/four-chips.toml --set scheduler=fcfs 'rw=randrw rwmixread=70 norandommap=1 bs=4k iodepth=32 number_ios=450000'

# 70 % random reads, 4 outstanding, read-first
floatgate run validation/devices/four-chips.toml --set scheduler=read-first 'rw=randrw rwmixread=70 norandommap=1 bs=4k iodepth=4 number_ios=450000'

# 70 % random reads, 32 outstanding, read-first
floatgate run validation/devices/four-chips.toml --set scheduler=read-first 'rw=randrw rwmixread=70 norandommap=1 bs=4k iodepth=32 number_ios=450000'

# One chip, Poisson arrivals, load 0.5
floatgate run validation/devices/four-chips.toml --set geometry.channels=1 --set geometry.chips=1 --set capacity.logical=256MiB 'rw=randread norandommap=1 bs=4k rate_iops=3828 rate_process=poisson number_ios=300000'

# One chip, Poisson arrivals, load 0.8
floatgate run validation/devices/four-chips.toml --set geometry.channels=1 --set geometry.chips=1 --set capacity.logical=256MiB 'rw=randread norandommap=1 bs=4k rate_iops=6126 rate_process=poisson number_ios=3000000'

# One chip, Poisson arrivals, load 0.9
floatgate run validation/devices/four-chips.toml --set geometry.channels=1 --set geometry.chips=1 --set capacity.logical=256MiB 'rw=randread norandommap=1 bs=4k rate_iops=6891 rate_process=poisson number_ios=3000000'

## Other simulators

# MQSim, read of 4 KiB
floatgate run mqsim-default --set geometry.blocks=64 --set capacity.spare=0.2 --set gc.hard_threshold=1 --precondition 'rw=write bs=64k size=16m' 'rw=randread bs=4k size=16m number_ios=2000'

# MQSim, write of 4 KiB
floatgate run mqsim-default --set geometry.blocks=64 --set capacity.spare=0.2 --set gc.hard_threshold=1 --set geometry.page_size=4KiB --precondition none 'rw=randwrite bs=4k size=16m number_ios=2000'

# MQSim, random writes at 73 % occupancy
floatgate run mqsim-default --set geometry.blocks=256 --set geometry.pages=64 --set geometry.page_size=4KiB --set capacity.spare=0.2 --set gc.soft_threshold=3 --set gc.hard_threshold=1 --precondition 'rw=randwrite norandommap=1 bs=4k size=91.25% io_size=800%' 'rw=randwrite norandommap=1 bs=4k size=91.25% number_ios=1m iodepth=32'

# DiskSim, ssd-rr250k
floatgate run validation/devices/disksim-ssd.toml 'rw=randread norandommap=1 bssplit=4k/63:8k/23:12k/9:16k/3:20k/2 rate_iops=2000 rate_process=poisson number_ios=250000'

# DiskSim, ssd-rw250k
floatgate run validation/devices/disksim-ssd.toml 'rw=randwrite norandommap=1 bssplit=4k/63:8k/23:12k/9:16k/3:20k/2 rate_iops=2000 rate_process=poisson number_ios=250000'

# SimpleSSD, reads of 4 KiB
floatgate run tiny --set nand.cell=mlc --set 'nand.read=["40us", "65us"]' --set bus.protocol.nv-ddr=400MT/s 'rw=randread bs=4k number_ios=4000'

# FlashSim, a page
floatgate run tiny --set nand.read=25us --set nand.program=300us --set bus.protocol.nv-ddr=409600kT/s --set bus.command_cycle=2us --set 'bus.command_cycles={ read = 2, program = 1 }' --precondition 'rw=write bs=64k size=1m' 'rw=randread bs=4k size=1m number_ios=256 ;
    rw=write bs=4k offset=2m size=1m number_ios=256 thinktime=0'

# SSDsim, read of a page
floatgate run tiny --set nand.read=20us --set 'bus.protocol={ sdr = "25ns" }' --set bus.command_cycles.read=7 'rw=randread bs=4k number_ios=1000'

# SSDsim, write of a page
floatgate run tiny --set 'bus.protocol={ sdr = "25ns" }' --set bus.command_cycles.program=7 --precondition none 'rw=randwrite bs=4k number_ios=1000'
